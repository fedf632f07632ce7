// presage: problem transpose
// presage: entry transpose
// presage: tune THREADS = 1, 2, 4
// presage: tune BAND = 8, 32, 128
// presage: tune ORDER = 0, 1
//
// Blocks of 8 by 8 are transposed in registers, so that each line is read and written in whole vectors. Blocks follow
// one another inside bands of BAND rows (ORDER 0, down the band) or of BAND columns (ORDER 1, along it).

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));

#define PAIRS_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define PAIRS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define QUADS_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define QUADS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define HALVES_LOW(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HALVES_HIGH(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

static inline void block(const float *restrict x, float *restrict y, long rows, long cols) {
    vec a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = *(const vec *)(x + i * cols);
    for (int i = 0; i < 4; i++) {
        b[2 * i] = PAIRS_LOW(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = PAIRS_HIGH(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = QUADS_LOW(b[i], b[i + 2]);
        a[i + 1] = QUADS_HIGH(b[i], b[i + 2]);
        a[i + 2] = QUADS_LOW(b[i + 1], b[i + 3]);
        a[i + 3] = QUADS_HIGH(b[i + 1], b[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        *(vec *)(y + i * rows) = HALVES_LOW(a[i], a[i + 4]);
        *(vec *)(y + (i + 4) * rows) = HALVES_HIGH(a[i], a[i + 4]);
    }
}

static void edge(const float *x, float *y, long rows, long cols, int height, int width) {
    for (int c = 0; c < width; c++)
        for (int r = 0; r < height; r++) y[c * rows + r] = x[r * cols + c];
}

static void at(const float *x, float *y, int rows, int cols, int r, int c) {
    const float *from = x + (long)r * cols + c;
    float *to = y + (long)c * rows + r;
    int height = rows - r < 8 ? rows - r : 8, width = cols - c < 8 ? cols - c : 8;
    if (height == 8 && width == 8)
        block(from, to, rows, cols);
    else
        edge(from, to, rows, cols, height, width);
}

void transpose(const float *x, float *y, int rows, int cols) {
#if ORDER == 0
#pragma omp parallel for num_threads(THREADS)
    for (int band = 0; band < rows; band += BAND)
        for (int c = 0; c < cols; c += 8)
            for (int r = band; r < rows && r < band + BAND; r += 8) at(x, y, rows, cols, r, c);
#else
#pragma omp parallel for num_threads(THREADS)
    for (int band = 0; band < cols; band += BAND)
        for (int r = 0; r < rows; r += 8)
            for (int c = band; c < cols && c < band + BAND; c += 8) at(x, y, rows, cols, r, c);
#endif
}
