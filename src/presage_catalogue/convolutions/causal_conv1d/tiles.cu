// presage: problem causal_conv1d
// presage: entry causal_conv1d
// presage: tune THREADS = 128, 64, 256, 512
// presage: tune ITEMS = 4, 1, 2, 8
// presage: tune BLOCKED = 0, 1
// presage: where ITEMS > 1 or BLOCKED == 0
// presage: grid batch * channels * cdiv(length, THREADS * ITEMS)
// presage: block THREADS
// presage: shared 4 * (THREADS * ITEMS + 2 * width)
//
// A block reads THREADS * ITEMS elements of a row, and the width - 1 before them, into shared memory. A thread's
// outputs are THREADS apart, or side by side (BLOCKED), where its reads overlap but neighbours' reads share banks.

extern "C" __global__ void __launch_bounds__(THREADS)
causal_conv1d(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int batch,
              int channels, int length, int width) {
    extern __shared__ float window[];
    float *weights = window + THREADS * ITEMS + width;
    const int tiles = (length + THREADS * ITEMS - 1) / (THREADS * ITEMS);
    const int start = blockIdx.x % tiles * THREADS * ITEMS, row = blockIdx.x / tiles;
    const float *in = x + (size_t)row * length;
    float *out = y + (size_t)row * length;

    for (int j = threadIdx.x; j < width; j += THREADS) weights[j] = weight[row % channels * width + j];
    for (int i = threadIdx.x; i < THREADS * ITEMS + width - 1; i += THREADS) {
        const int t = start - (width - 1) + i;
        window[i] = t >= 0 && t < length ? in[t] : 0.0f;
    }
    __syncthreads();

    float sum[ITEMS] = {};
    const int first = BLOCKED ? threadIdx.x * ITEMS : threadIdx.x, step = BLOCKED ? 1 : THREADS;
    for (int j = 0; j < width; j++) {
        const float w = weights[j];
#pragma unroll
        for (int i = 0; i < ITEMS; i++) sum[i] += w * window[first + i * step + j];
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int t = start + first + i * step;
        if (t < length) out[t] = sum[i];
    }
}
