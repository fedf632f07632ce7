// presage: problem sum
// presage: entry sum_rows
// presage: tune THREADS = 1, 2, 4
// presage: tune SPLIT = 0, 1
// presage: tune KIND = 0, 1, 2, 3
// presage: tune UNROLL = 1, 4, 8
// presage: where SPLIT == 0 or THREADS > 1
// presage: where KIND == 1 or UNROLL == 1
//
// SPLIT shares out each row's columns between the threads instead of the rows, at the price of a barrier a row.
// KIND 0 leaves the lanes to the compiler; 1 keeps UNROLL vectors of sums, enough of which hide the latency of an
// addition; 2 adds by halves; 3 adds in double precision.

#define WIDTH 16
typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

static inline float lanes(const float *in, long n) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += in[i];
    return sum;
}

#if KIND == 0
#define ADD_UP lanes
#elif KIND == 1
#define ADD_UP vectors
static float vectors(const float *in, long n) {
    vec part[UNROLL] = {0};
    long i = 0;
    for (; i + UNROLL * WIDTH <= n; i += UNROLL * WIDTH)
        for (int u = 0; u < UNROLL; u++) part[u] += *(const vec *)(in + i + u * WIDTH);
    for (int u = 1; u < UNROLL; u++) part[0] += part[u];
    float sum = 0.0f;
    for (int l = 0; l < WIDTH; l++) sum += part[0][l];
    for (; i < n; i++) sum += in[i];
    return sum;
}
#elif KIND == 2
#define ADD_UP halves
static float halves(const float *in, long n) {
    if (n <= 64) return lanes(in, n);
    long half = n / 2;
    return halves(in, half) + halves(in + half, n - half);
}
#else
#define ADD_UP doubles
static float doubles(const float *in, long n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += in[i];
    return (float)sum;
}
#endif

void sum_rows(const float *x, float *y, int rows, int cols) {
#if SPLIT
    long size = (cols + THREADS - 1L) / THREADS;
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float sum = 0.0f;
#pragma omp parallel for reduction(+ : sum) num_threads(THREADS)
        for (long from = 0; from < cols; from += size) sum += ADD_UP(in + from, from + size < cols ? size : cols - from);
        y[r] = sum;
    }
#else
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) y[r] = ADD_UP(x + (long)r * cols, cols);
#endif
}
