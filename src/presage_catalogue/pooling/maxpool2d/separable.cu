// presage: problem maxpool2d
// presage: entry maxpool2d
// presage: tune TW = 32, 64, 128
// presage: tune TH = 16, 8, 32
// presage: tune THREADS = 256, 128
// presage: tune STAGE = 0, 1
// presage: where STAGE == 0 or TH * TW <= 1024
// presage: grid n * c * cdiv((h - window) // stride + 1, TH) * cdiv((w - window) // stride + 1, TW)
// presage: block THREADS
// presage: shared 4 * ((TH - 1) * stride + window) * (TW + ((TW - 1) * stride + window if STAGE else 0))
//
// A block computes TH * TW outputs in two steps: maxima along the rows of x, left in shared memory, and of those,
// maxima down the columns. STAGE first brings the block's part of x into shared memory, so that memory sees each
// element once.

extern "C" __global__ void __launch_bounds__(THREADS)
maxpool2d(const float *__restrict__ x, float *__restrict__ y, int n, int c, int h, int w, int window, int stride) {
    extern __shared__ float across[];
    const int rows = (h - window) / stride + 1, cols = (w - window) / stride + 1;
    const int tiles_down = (rows + TH - 1) / TH, tiles_across = (cols + TW - 1) / TW;
    const int q = blockIdx.x % tiles_across * TW, p = blockIdx.x / tiles_across % tiles_down * TH;
    const size_t plane = blockIdx.x / tiles_across / tiles_down;
    const int wide = min(TW, cols - q), high = min(TH, rows - p), tall = (high - 1) * stride + window;
    const float *from = x + (plane * h + p * stride) * w + q * stride;
    int pitch = w;
    if (STAGE) {
        float *stage = across + ((TH - 1) * stride + window) * TW;
        pitch = (wide - 1) * stride + window;
        for (int i = threadIdx.x; i < tall * pitch; i += THREADS) stage[i] = from[i / pitch * w + i % pitch];
        __syncthreads();
        from = stage;
    }
    for (int i = threadIdx.x; i < tall * TW; i += THREADS) {
        const int u = i / TW, j = i % TW;
        if (j >= wide) continue;
        float largest = -INFINITY;
        for (int v = 0; v < window; v++) largest = fmaxf(largest, from[u * pitch + j * stride + v]);
        across[i] = largest;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < high * TW; i += THREADS) {
        const int row = i / TW, j = i % TW;
        if (j >= wide) continue;
        float largest = -INFINITY;
        for (int u = 0; u < window; u++) largest = fmaxf(largest, across[(row * stride + u) * TW + j]);
        y[(plane * rows + p + row) * cols + q + j] = largest;
    }
}
