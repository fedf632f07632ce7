// presage: problem layernorm
// presage: entry layernorm
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune VECTOR = 4, 2, 1
// presage: tune KEEP = 8, 0, 16
// presage: grid cdiv(rows * 32, THREADS)
// presage: block THREADS
//
// One warp per row, KEEP vectors of which stay in each lane's registers; what lies beyond is read again from cache.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

template <int N> __device__ float sum_of(Pack<N> pack) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) sum += pack.at[i];
    return sum;
}

template <int N> __device__ float squares_of(Pack<N> pack, float mean) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) sum += (pack.at[i] - mean) * (pack.at[i] - mean);
    return sum;
}

template <int N> __device__ Pack<N> normalised(Pack<N> pack, Pack<N> weight, Pack<N> bias, float mean, float scale) {
#pragma unroll
    for (int i = 0; i < N; i++) pack.at[i] = (pack.at[i] - mean) * scale * weight.at[i] + bias.at[i];
    return pack;
}

template <int N>
__device__ void layernorm_row(const float *in, const float *weight, const float *bias, float *out, int cols,
                              int lane) {
    const int vectors = cols / N, rest = lane + KEEP * 32;
    const Pack<N> *from = (const Pack<N> *)in, *weights = (const Pack<N> *)weight, *biases = (const Pack<N> *)bias;
    Pack<N> *to = (Pack<N> *)out;
    Pack<N> kept[KEEP > 0 ? KEEP : 1];

    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * 32 < vectors) sum += sum_of(kept[k] = from[lane + k * 32]);
    for (int v = rest; v < vectors; v += 32) sum += sum_of(from[v]);
    const float mean = warp_sum(sum) / cols;
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * 32 < vectors) squares += squares_of(kept[k], mean);
    for (int v = rest; v < vectors; v += 32) squares += squares_of(from[v], mean);
    const float scale = rsqrtf(warp_sum(squares) / cols + 1e-5f);

#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = lane + k * 32;
        if (v < vectors) to[v] = normalised(kept[k], weights[v], biases[v], mean, scale);
    }
    for (int v = rest; v < vectors; v += 32) to[v] = normalised(from[v], weights[v], biases[v], mean, scale);
}

extern "C" __global__ void __launch_bounds__(THREADS)
layernorm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
          float *__restrict__ y, int rows, int cols) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return; // a whole warp at a time
    const size_t start = (size_t)row * cols;
    if (cols % VECTOR == 0) layernorm_row<VECTOR>(x + start, weight, bias, y + start, cols, lane);
    else layernorm_row<1>(x + start, weight, bias, y + start, cols, lane);
}
