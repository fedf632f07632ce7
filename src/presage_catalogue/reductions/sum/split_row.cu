// presage: problem sum
// presage: entry parts
// presage: tune PARTS = 4, 2, 16, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry combine
// presage: grid cdiv(rows, 128)
// presage: block 128
// presage: scratch partial = 4 * rows * PARTS
//
// PARTS blocks share a row and leave their sums in memory; a second launch adds those up. Worth it only where there are
// fewer rows than the device can hold blocks.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ float thread_sum(const float *row, int cols, int part) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N, share = (vectors + PARTS - 1) / PARTS;
    const int end = min(vectors, (part + 1) * share);
    float sum = 0.0f;
    for (int v = part * share + threadIdx.x; v < end; v += THREADS) {
        const Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) sum += pack.at[i];
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
parts(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, float *__restrict__ partial) {
    __shared__ float of_warp[THREADS / 32];
    const int row = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const float *in = x + (size_t)row * cols;
    float sum = cols % VECTOR == 0 ? thread_sum<VECTOR>(in, cols, part) : thread_sum<1>(in, cols, part);
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; w++) sum += of_warp[w];
        partial[blockIdx.x] = sum;
    }
}

extern "C" __global__ void combine(const float *__restrict__ x, float *__restrict__ y, int rows, int cols,
                                   const float *__restrict__ partial) {
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part++) sum += partial[row * PARTS + part];
    y[row] = sum;
}
