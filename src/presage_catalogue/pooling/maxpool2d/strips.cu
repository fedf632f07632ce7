// presage: problem maxpool2d
// presage: entry maxpool2d
// presage: tune ROWS = 4, 1, 2, 8
// presage: tune COLS = 1, 2, 4
// presage: tune THREADS = 128, 64, 256
// presage: tune SPECIAL = 1, 0
// presage: grid cdiv(n * c * cdiv((h - window) // stride + 1, ROWS) * cdiv((w - window) // stride + 1, COLS), THREADS)
// presage: block THREADS
//
// A thread computes ROWS outputs below each other, COLS wide. It goes down the rows of x once: the maximum along a row
// counts for every window that covers it. SPECIAL has code of its own for the usual windows, with their loops unrolled.

template <int WINDOW>
__device__ void strip(const float *x, float *y, int w, int window, int stride, int rows, int cols, int width) {
    if (WINDOW) window = WINDOW;
    float best[ROWS][COLS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++) best[i][j] = -INFINITY;
    const int last = (min(ROWS, rows) - 1) * stride + window;
    for (int u = 0; u < last; u++) {
        float across[COLS];
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            across[j] = -INFINITY;
            if (j >= cols) continue;
#pragma unroll
            for (int v = 0; v < (WINDOW ? WINDOW : window); v++)
                across[j] = fmaxf(across[j], x[(size_t)u * w + j * stride + v]);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (u >= i * stride && u < i * stride + window)
#pragma unroll
                for (int j = 0; j < COLS; j++) best[i][j] = fmaxf(best[i][j], across[j]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++)
            if (i < rows && j < cols) y[(size_t)i * width + j] = best[i][j];
}

extern "C" __global__ void __launch_bounds__(THREADS)
maxpool2d(const float *__restrict__ x, float *__restrict__ y, int n, int c, int h, int w, int window, int stride) {
    const int rows = (h - window) / stride + 1, cols = (w - window) / stride + 1;
    const int strips = (rows + ROWS - 1) / ROWS, groups = (cols + COLS - 1) / COLS;
    const int at = blockIdx.x * THREADS + threadIdx.x;
    if (at >= n * c * strips * groups) return;
    const int q = at % groups * COLS, p = at / groups % strips * ROWS;
    const size_t plane = at / groups / strips;
    const float *from = x + (plane * h + p * stride) * w + q * stride;
    float *to = y + (plane * rows + p) * cols + q;
    if (SPECIAL && window == 2) strip<2>(from, to, w, window, stride, rows - p, cols - q, cols);
    else if (SPECIAL && window == 3) strip<3>(from, to, w, window, stride, rows - p, cols - q, cols);
    else if (SPECIAL && window == 7) strip<7>(from, to, w, window, stride, rows - p, cols - q, cols);
    else strip<0>(from, to, w, window, stride, rows - p, cols - q, cols);
}
