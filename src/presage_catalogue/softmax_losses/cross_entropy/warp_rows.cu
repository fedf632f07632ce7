// presage: problem cross_entropy
// presage: entry cross_entropy
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune VECTOR = 4, 2, 1
// presage: tune UNROLL = 4, 1, 8
// presage: tune NATIVE = 0, 1
// presage: grid cdiv(rows * 32, THREADS)
// presage: block THREADS
//
// One warp per row, which it reads once: the sum is rescaled whenever UNROLL * VECTOR new elements raise the maximum.
// NATIVE takes the hardware's exponential.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float exp_of(float v) { return NATIVE ? __expf(v) : expf(v); }

template <int N> __device__ void scan(const float *row, int cols, int lane, float &largest, float &sum) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N;
    for (int first = lane; first < vectors; first += UNROLL * 32) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * 32 < vectors) pack[u] = from[first + u * 32];
            else
#pragma unroll
                for (int i = 0; i < N; i++) pack[u].at[i] = -INFINITY;
        }
        const float before = largest;
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) largest = fmaxf(largest, pack[u].at[i]);
        sum *= exp_of(before - largest);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) sum += exp_of(pack[u].at[i] - largest);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
cross_entropy(const float *__restrict__ logits, const long long *__restrict__ targets, float *__restrict__ loss,
              int rows, int cols) {
    const int r = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (r >= rows) return; // a whole warp at a time
    const float *row = logits + (size_t)r * cols;
    // Not -INFINITY: lanes that see no element would compute infinity minus infinity.
    float largest = -3.0e38f, sum = 0.0f;
    if (cols % VECTOR == 0) scan<VECTOR>(row, cols, lane, largest, sum);
    else scan<1>(row, cols, lane, largest, sum);
    float row_max = largest;
    for (int offset = 16; offset > 0; offset /= 2)
        row_max = fmaxf(row_max, __shfl_xor_sync(0xffffffffu, row_max, offset));
    sum *= exp_of(largest - row_max);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) loss[r] = row_max + logf(sum) - row[targets[r]];
}
