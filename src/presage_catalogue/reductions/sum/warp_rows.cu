// presage: problem sum
// presage: entry row_sum
// presage: tune LANES = 32, 16, 8
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1, 8
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row, so that no two warps ever wait for each other.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ float lane_sum(const float *row, int cols, int lane) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N;
    float sums[UNROLL] = {};
    int v = lane;
    for (; v + (UNROLL - 1) * LANES < vectors; v += UNROLL * LANES) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) pack[u] = from[v + u * LANES];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) sums[u] += pack[u].at[i];
    }
    for (; v < vectors; v += LANES) {
        const Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) sums[0] += pack.at[i];
    }
#pragma unroll
    for (int u = 1; u < UNROLL; u++) sums[0] += sums[u];
    return sums[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
row_sum(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    const float *in = x + (size_t)row * cols;
    float sum = 0.0f;
    // Threads past the last row add zeros: the shuffles need every lane of a warp.
    if (row < rows) sum = cols % VECTOR == 0 ? lane_sum<VECTOR>(in, cols, lane) : lane_sum<1>(in, cols, lane);
    for (int offset = LANES / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (row < rows && lane == 0) y[row] = sum;
}
