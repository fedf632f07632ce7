// presage: problem rmsnorm
// presage: entry rmsnorm
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune VECTOR = 4, 1
// presage: tune KEEP = 8, 0, 16
// presage: tune BLOCKS = 0, 528
// presage: grid BLOCKS if BLOCKS else cdiv(rows * 32, THREADS)
// presage: block THREADS
//
// One warp per row, KEEP vectors of which stay in each lane's registers. BLOCKS 0 launches a warp per row; otherwise
// that many blocks walk over the rows.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

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

template <int N> __device__ void rmsnorm_row(const float *in, const float *weight, float *out, int cols, int lane) {
    const int vectors = cols / N;
    const Pack<N> *from = (const Pack<N> *)in, *weights = (const Pack<N> *)weight;
    Pack<N> *to = (Pack<N> *)out;
    Pack<N> kept[KEEP > 0 ? KEEP : 1];

    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * 32 < vectors) sum += squares(kept[k] = from[lane + k * 32]);
    for (int v = lane + KEEP * 32; v < vectors; v += 32) sum += squares(from[v]);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const float scale = rsqrtf(sum / cols + 1e-6f);

#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * 32 < vectors) to[lane + k * 32] = scaled(kept[k], weights[lane + k * 32], scale);
    for (int v = lane + KEEP * 32; v < vectors; v += 32) to[v] = scaled(from[v], weights[v], scale);
}

extern "C" __global__ void __launch_bounds__(THREADS)
rmsnorm(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int rows, int cols) {
    const int lane = threadIdx.x % 32;
    for (int row = (blockIdx.x * THREADS + threadIdx.x) / 32; row < rows; row += gridDim.x * THREADS / 32) {
        const size_t start = (size_t)row * cols;
        if (cols % VECTOR == 0) rmsnorm_row<VECTOR>(x + start, weight, y + start, cols, lane);
        else rmsnorm_row<1>(x + start, weight, y + start, cols, lane);
    }
}
