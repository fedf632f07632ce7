// presage: problem rmsnorm
// presage: entry rmsnorm
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune VECTOR = 4, 2, 1
// presage: tune KEEP = 8, 0, 2
// presage: tune SHARED = 0, 1
// presage: where KEEP == 0 or SHARED == 0
// presage: grid rows
// presage: block THREADS
// presage: shared 4 * cols if SHARED and cols <= 49152 else 0
//
// One block per row. Between the sum of squares and the result, KEEP vectors per thread stay in registers, or the whole
// row stays in shared memory; with neither, or beyond them, the row is read again from cache.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float block_sum(float value) {
    __shared__ float of_warp[32];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    const int lane = threadIdx.x % 32;
    if (lane == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = lane < THREADS / 32 ? of_warp[lane] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

template <int N> __device__ float squares(Pack<N> pack) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) sum += pack.at[i] * pack.at[i];
    return sum;
}

template <int N> __device__ Pack<N> scaled(Pack<N> pack, Pack<N> weight, float scale) {
#pragma unroll
    for (int i = 0; i < N; i++) pack.at[i] *= scale * weight.at[i];
    return pack;
}

template <int N> __device__ void rmsnorm_row(const float *in, const float *weight, float *out, int cols) {
    extern __shared__ __align__(16) float stash[];
    const int vectors = cols / N, rest = threadIdx.x + KEEP * THREADS;
    const bool stashed = SHARED && cols <= 49152;
    const Pack<N> *from = (const Pack<N> *)in, *weights = (const Pack<N> *)weight;
    Pack<N> *to = (Pack<N> *)out;
    Pack<N> kept[KEEP > 0 ? KEEP : 1];

    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) sum += squares(kept[k] = from[v]);
    }
    for (int v = rest; v < vectors; v += THREADS) {
        const Pack<N> pack = from[v];
        sum += squares(pack);
        if (stashed) ((Pack<N> *)stash)[v] = pack;
    }
    const float scale = rsqrtf(block_sum(sum) / cols + 1e-6f);

#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) to[v] = scaled(kept[k], weights[v], scale);
    }
    for (int v = rest; v < vectors; v += THREADS)
        to[v] = scaled(stashed ? ((Pack<N> *)stash)[v] : from[v], weights[v], scale);
}

extern "C" __global__ void __launch_bounds__(THREADS)
rmsnorm(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int rows, int cols) {
    const size_t start = (size_t)blockIdx.x * cols;
    if (cols % VECTOR == 0) rmsnorm_row<VECTOR>(x + start, weight, y + start, cols);
    else rmsnorm_row<1>(x + start, weight, y + start, cols);
}
