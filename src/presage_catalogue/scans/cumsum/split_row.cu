// presage: problem cumsum
// presage: entry sums
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune ITEMS = 8, 2, 4, 16, 32
// presage: grid rows * cdiv(cols, THREADS * ITEMS)
// presage: block THREADS
// presage: entry offsets
// presage: grid rows
// presage: block 1024
// presage: entry scan
// presage: grid rows * cdiv(cols, THREADS * ITEMS)
// presage: block THREADS
// presage: scratch partial = 4 * rows * cdiv(cols, THREADS * ITEMS)
//
// Rows are cut into chunks of THREADS * ITEMS. The first launch sums every chunk, the second scans those sums, and the
// third scans every chunk from its offset: x is read twice, but all chunks of all rows are busy at once.

#define CHUNK (THREADS * ITEMS)

// The sum of the values of the threads before this one. It is not an inclusive scan less the thread's own value: that
// would cancel badly next to an outlier.
template <int threads> __device__ float before_thread(float value) {
    __shared__ float of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset) value += other;
    }
    if (lane == 31) of_warp[warp] = value;
    __syncthreads();
    float warps = lane < threads / 32 ? of_warp[lane] : 0.0f;
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, warps, offset);
        if (lane >= offset) warps += other;
    }
    const float earlier = __shfl_sync(0xffffffffu, warps, warp > 0 ? warp - 1 : 0);
    const float exclusive = __shfl_up_sync(0xffffffffu, value, 1);
    return (warp > 0 ? earlier : 0.0f) + (lane > 0 ? exclusive : 0.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS)
sums(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, float *__restrict__ partial) {
    const int chunks = (cols + CHUNK - 1) / CHUNK, start = blockIdx.x % chunks * CHUNK;
    const float *in = x + (size_t)(blockIdx.x / chunks) * cols;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int c = start + i * THREADS + threadIdx.x;
        if (c < cols) sum += in[c];
    }
    sum += before_thread<THREADS>(sum);
    if (threadIdx.x == THREADS - 1) partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(1024)
offsets(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, float *__restrict__ partial) {
    const int chunks = (cols + CHUNK - 1) / CHUNK;
    float *sums = partial + (size_t)blockIdx.x * chunks;
    __shared__ float carry;
    float before = 0.0f;
    for (int first = 0; first < chunks; first += 1024) {
        const int i = first + threadIdx.x;
        const float value = i < chunks ? sums[i] : 0.0f, earlier = before_thread<1024>(value);
        if (i < chunks) sums[i] = before + earlier;
        if (threadIdx.x == 1023) carry = earlier + value;
        __syncthreads();
        before += carry;
        __syncthreads(); // carry and before_thread's memory are free again
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
scan(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, const float *__restrict__ partial) {
    const int chunks = (cols + CHUNK - 1) / CHUNK, start = blockIdx.x % chunks * CHUNK;
    const size_t row = (size_t)(blockIdx.x / chunks) * cols;
    const int first = start + threadIdx.x * ITEMS;
    alignas(16) float item[ITEMS];
    if (ITEMS % 4 == 0 && cols % 4 == 0) {
#pragma unroll
        for (int i = 0; i < ITEMS; i += 4)
            *(float4 *)(item + i) = first + i < cols ? *(const float4 *)(x + row + first + i) : make_float4(0, 0, 0, 0);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) item[i] = first + i < cols ? x[row + first + i] : 0.0f;
    }
#pragma unroll
    for (int i = 1; i < ITEMS; i++) item[i] += item[i - 1];
    const float offset = partial[blockIdx.x] + before_thread<THREADS>(item[ITEMS - 1]);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) item[i] += offset;
    if (ITEMS % 4 == 0 && cols % 4 == 0) {
#pragma unroll
        for (int i = 0; i < ITEMS; i += 4)
            if (first + i < cols) *(float4 *)(y + row + first + i) = *(float4 *)(item + i);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            if (first + i < cols) y[row + first + i] = item[i];
    }
}
