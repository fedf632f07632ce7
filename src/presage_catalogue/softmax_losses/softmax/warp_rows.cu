// presage: problem softmax
// presage: entry softmax
// presage: tune KEEP = 8, 0, 16
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune VECTOR = 4, 2, 1
// presage: tune NATIVE = 0, 1
// presage: grid cdiv(rows * 32, THREADS)
// presage: block THREADS
//
// One warp per row. A row of up to KEEP * 32 * VECTOR elements stays in registers; a longer one is read for its maximum
// and sum, found together, and again for the result. NATIVE takes the hardware's exponential.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float exp_of(float v) { return NATIVE ? __expf(v) : expf(v); }

__device__ float warp_max(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}

__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

template <int N> __device__ void kept_row(const Pack<N> *from, Pack<N> *to, int vectors, int lane) {
    Pack<N> kept[KEEP > 0 ? KEEP : 1];
    float largest = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (lane + k * 32 >= vectors) break;
        kept[k] = from[lane + k * 32];
#pragma unroll
        for (int i = 0; i < N; i++) largest = fmaxf(largest, kept[k].at[i]);
    }
    largest = warp_max(largest);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (lane + k * 32 >= vectors) break;
#pragma unroll
        for (int i = 0; i < N; i++) sum += kept[k].at[i] = exp_of(kept[k].at[i] - largest);
    }
    const float scale = 1.0f / warp_sum(sum);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (lane + k * 32 >= vectors) break;
#pragma unroll
        for (int i = 0; i < N; i++) kept[k].at[i] *= scale;
        to[lane + k * 32] = kept[k];
    }
}

template <int N> __device__ void long_row(const Pack<N> *from, Pack<N> *to, int vectors, int lane) {
    // Not -INFINITY: lanes that see no element would compute infinity minus infinity.
    float largest = -3.0e38f, sum = 0.0f;
    for (int v = lane; v < vectors; v += 32) {
        const Pack<N> pack = from[v];
        const float before = largest;
#pragma unroll
        for (int i = 0; i < N; i++) largest = fmaxf(largest, pack.at[i]);
        sum *= exp_of(before - largest);
#pragma unroll
        for (int i = 0; i < N; i++) sum += exp_of(pack.at[i] - largest);
    }
    const float row_max = warp_max(largest);
    const float scale = 1.0f / warp_sum(sum * exp_of(largest - row_max));
    for (int v = lane; v < vectors; v += 32) {
        Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) pack.at[i] = exp_of(pack.at[i] - row_max) * scale;
        to[v] = pack;
    }
}

template <int N> __device__ void softmax_row(const float *in, float *out, int cols, int lane) {
    const Pack<N> *from = (const Pack<N> *)in;
    if (cols <= KEEP * 32 * N) kept_row<N>(from, (Pack<N> *)out, cols / N, lane);
    else long_row<N>(from, (Pack<N> *)out, cols / N, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return; // a whole warp at a time
    const size_t start = (size_t)row * cols;
    if (cols % VECTOR == 0) softmax_row<VECTOR>(x + start, y + start, cols, lane);
    else softmax_row<1>(x + start, y + start, cols, lane);
}
