// presage: problem batchnorm_inference
// presage: entry fold
// presage: tune THREADS = 256, 64, 512
// presage: tune VECTOR = 4, 1, 2
// presage: tune FOLDED = 1, 0
// presage: tune INDEX = 0, 1
// presage: tune BLOCKS = 0, 528, 2112
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or (BLOCKS == 0 and VECTOR > 1 and FOLDED == 1)
// presage: where INDEX == 0 or VECTOR > 1
// presage: grid cdiv(channels, 128)
// presage: block 128
// presage: entry apply
// presage: grid BLOCKS if BLOCKS else cdiv(batch * channels * size, THREADS * VECTOR)
// presage: block THREADS
// presage: scratch scales = 4 * channels
// presage: scratch shifts = 4 * channels
//
// All elements in one row of threads. FOLDED makes one scale and one shift of each channel's four numbers in a launch of
// its own. A vector looks up its channel for each element (INDEX 0) or for the first and moves on from there (1). TAIL
// takes the elements that fill no vector one by one.

struct alignas(4 * VECTOR) Pack { float at[VECTOR]; };

extern "C" __global__ void fold(const float *x, const float *mean, const float *variance, const float *weight,
                                const float *bias, float *y, int batch, int channels, int size, float *scales,
                                float *shifts) {
    const int c = blockIdx.x * 128 + threadIdx.x;
    if (!FOLDED || c >= channels) return;
    const float scale = weight[c] / sqrtf(variance[c] + 1e-5f);
    scales[c] = scale;
    shifts[c] = bias[c] - mean[c] * scale;
}

extern "C" __global__ void __launch_bounds__(THREADS)
apply(const float *__restrict__ x, const float *__restrict__ mean, const float *__restrict__ variance,
      const float *__restrict__ weight, const float *__restrict__ bias, float *__restrict__ y, int batch, int channels,
      int size, const float *__restrict__ scales, const float *__restrict__ shifts) {
    const int n = batch * channels * size, vectors = n / VECTOR;
    for (int v = blockIdx.x * THREADS + threadIdx.x; v <= vectors; v += gridDim.x * THREADS) {
        const int first = v * VECTOR, count = v < vectors ? VECTOR : TAIL ? n - first : 0;
        Pack pack;
        if (v < vectors) pack = ((const Pack *)x)[v];
        int c = first / size % channels, left = size - first % size;
        if (v == vectors)
            for (int i = 0; i < count; i++) pack.at[i] = x[first + i];
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            if (i >= count) break;
            if (INDEX == 0) c = (first + i) / size % channels;
            if (INDEX == 1 && i > 0 && --left == 0) c = c + 1 == channels ? 0 : c + 1, left = size;
            if (FOLDED) pack.at[i] = fmaf(pack.at[i], scales[c], shifts[c]);
            else pack.at[i] = (pack.at[i] - mean[c]) * rsqrtf(variance[c] + 1e-5f) * weight[c] + bias[c];
        }
        if (v < vectors) ((Pack *)y)[v] = pack;
        else
            for (int i = 0; i < count; i++) y[first + i] = pack.at[i];
    }
}
