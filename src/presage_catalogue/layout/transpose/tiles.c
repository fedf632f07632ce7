// presage: problem transpose
// presage: entry transpose
// presage: tune THREADS = 1, 2, 4
// presage: tune TILE = 8, 16, 32, 128
// presage: tune INNER = 0, 1, 2
//
// Tiles of TILE by TILE stay in the cache. Inside one, INNER 0 reads along x, 1 writes along y, and 2 gathers the tile
// in a buffer first, so that both are read and written in whole lines whatever the strides.

static int smaller(int a, int b) { return a < b ? a : b; }

static void tile(const float *restrict x, float *restrict y, int rows, int cols, int height, int width) {
#if INNER == 0
    for (int r = 0; r < height; r++)
        for (int c = 0; c < width; c++) y[(long)c * rows + r] = x[(long)r * cols + c];
#elif INNER == 1
    for (int c = 0; c < width; c++)
        for (int r = 0; r < height; r++) y[(long)c * rows + r] = x[(long)r * cols + c];
#else
    float buffer[TILE][TILE + 1]; /* the odd row length spreads a column over the cache's sets */
    for (int r = 0; r < height; r++)
        for (int c = 0; c < width; c++) buffer[r][c] = x[(long)r * cols + c];
    for (int c = 0; c < width; c++)
        for (int r = 0; r < height; r++) y[(long)c * rows + r] = buffer[r][c];
#endif
}

void transpose(const float *x, float *y, int rows, int cols) {
#pragma omp parallel for collapse(2) num_threads(THREADS)
    for (int c = 0; c < cols; c += TILE)
        for (int r = 0; r < rows; r += TILE)
            tile(x + (long)r * cols + c, y + (long)c * rows + r, rows, cols, smaller(TILE, rows - r),
                 smaller(TILE, cols - c));
}
