// presage: problem sum
// presage: entry row_sum
// presage: tune THREADS = 256, 64, 512, 1024
// presage: tune VECTOR = 4, 2, 1
// presage: tune UNROLL = 4, 1
// presage: tune REDUCE = 0, 1, 2
// presage: grid rows
// presage: block THREADS
//
// One block per row. UNROLL loads of VECTOR floats are in flight at once. The threads' sums meet by shuffles (REDUCE
// 0), by halving in shared memory (1) or by atomic additions to one number (2).

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float block_sum(float value) {
    __shared__ float part[THREADS];
    const int t = threadIdx.x;
    if (REDUCE == 1) {
        part[t] = value;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (t < half) part[t] += part[t + half];
            __syncthreads();
        }
        return part[0];
    }
    if (REDUCE == 2) {
        if (t == 0) part[0] = 0.0f;
        __syncthreads();
        atomicAdd(part, value);
        __syncthreads();
        return part[0];
    }
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    if (t % 32 == 0) part[t / 32] = value;
    __syncthreads();
    value = t % 32 < THREADS / 32 ? part[t % 32] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

template <int N> __device__ float thread_sum(const float *row, int cols) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N;
    float sums[UNROLL] = {};
    int v = threadIdx.x;
    for (; v + (UNROLL - 1) * THREADS < vectors; v += UNROLL * THREADS) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) pack[u] = from[v + u * THREADS];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) sums[u] += pack[u].at[i];
    }
    for (; v < vectors; v += THREADS) {
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
    const float *row = x + (size_t)blockIdx.x * cols;
    const float sum = block_sum(cols % VECTOR == 0 ? thread_sum<VECTOR>(row, cols) : thread_sum<1>(row, cols));
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
