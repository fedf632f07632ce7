// presage: entry $entry$
// presage: tune TX = 64, 32, 128
// presage: tune TY = 16, 8, 32, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune STAGE = 0, 1
// presage: where TX * TY >= 2 * THREADS
// presage: grid cdiv(w, TX), cdiv(h, TY), n
// presage: block THREADS
// presage: shared 4 * (TY + 2 * $reach$) * (TX + (TX + 2 * $reach$ if STAGE else 0))
//
// A block sums along the rows that TX by TY points need, keeps the results in shared memory, and sums those along the
// columns. STAGE first brings its part of u into shared memory too.

#define REACH $reach$
#define WIDE (TX + 2 * REACH)
#define TALL (TY + 2 * REACH)

__device__ float fetch(const float *plane, int y, int x, int h, int w) {
    $fetch$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float along[];
    float *stage = along + TALL * TX;
    constexpr float taps[] = {$taps$};
    const int left = blockIdx.x * TX, top = blockIdx.y * TY - REACH;
    const float *plane = u + (size_t)blockIdx.z * h * w;
    if (STAGE) {
        for (int i = threadIdx.x; i < TALL * WIDE; i += THREADS)
            stage[i] = fetch(plane, top + i / WIDE, left - REACH + i % WIDE, h, w);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < TALL * TX; i += THREADS) {
        const int row = i / TX, col = i % TX;
        float total = 0.0f;
#pragma unroll
        for (int k = -REACH; k <= REACH; k++)
            total += taps[k + REACH] * (STAGE ? stage[row * WIDE + col + REACH + k] : fetch(plane, top + row, left + col + k, h, w));
        along[i] = total;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TY * TX; i += THREADS) {
        const int row = i / TX, col = i % TX;
        float total = 0.0f;
#pragma unroll
        for (int k = 0; k <= 2 * REACH; k++) total += taps[k] * along[(row + k) * TX + col];
        if (top + REACH + row < h && left + col < w)
            out[((size_t)blockIdx.z * h + top + REACH + row) * w + left + col] = total;
    }
}
