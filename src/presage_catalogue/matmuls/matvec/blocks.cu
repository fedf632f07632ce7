// presage: problem matvec
// presage: entry clear
// presage: grid cdiv(m, 256)
// presage: block 256
// presage: entry parts
// presage: tune THREADS = 256, 128, 512, 1024, 2048
// presage: tune PARTS = 1, 2, 4, 8, 16
// presage: tune ROWS = 1, 2, 4
// presage: tune REDUCE = 0, 1
// presage: tune COMBINE = 0, 1
// presage: where THREADS < 2048 or (ROWS == 1 and REDUCE == 0)
// presage: where COMBINE == 0 or PARTS > 1
// presage: where REDUCE == 0 or ROWS < 4
// presage: grid cdiv(m, ROWS), PARTS
// presage: block THREADS
// presage: entry combine
// presage: grid cdiv(m, 256)
// presage: block 256
// presage: scratch partial = 4 * m * PARTS
//
// A block has ROWS rows and one of PARTS of their terms. It adds its threads' sums with shuffles, or with REDUCE in a tree
// in shared memory. Parts are added to the result at once, or with COMBINE kept for the last launch.

extern "C" __global__ void clear(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int m,
                                 int k, float *__restrict__ partial) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < m) y[i] = 0.0f;
}

__device__ float block_sum(float v) {
#if REDUCE
    __shared__ float tree[THREADS];
    __syncthreads();
    tree[threadIdx.x] = v;
    for (int by = THREADS / 2; by > 0; by /= 2) {
        __syncthreads();
        if (threadIdx.x < by) tree[threadIdx.x] += tree[threadIdx.x + by];
    }
    __syncthreads();
    return tree[0];
#else
    __shared__ float sums[THREADS / 32];
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffffu, v, by);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < THREADS / 32; w++) v += sums[w];
    return v;
#endif
}

extern "C" __global__ void parts(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int m,
                                 int k, float *__restrict__ partial) {
    const int first = blockIdx.x * ROWS, share = (k + 4 * PARTS - 1) / (4 * PARTS) * 4;
    const int begin = blockIdx.y * share, end = min(begin + share, k);
    float sum[ROWS] = {};
    if (k % 4 == 0) {
        for (int p = begin + threadIdx.x * 4; p < end; p += THREADS * 4) {
            const float4 factor = *(const float4 *)(x + p);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 v = *(const float4 *)(a + (size_t)min(first + r, m - 1) * k + p);
                sum[r] += v.x * factor.x + v.y * factor.y + v.z * factor.z + v.w * factor.w;
            }
        }
    } else {
        for (int p = begin + threadIdx.x; p < end; p += THREADS)
#pragma unroll
            for (int r = 0; r < ROWS; r++) sum[r] += a[(size_t)min(first + r, m - 1) * k + p] * x[p];
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const float whole = block_sum(sum[r]);
        if (threadIdx.x > 0 || first + r >= m) continue;
        if (COMBINE)
            partial[(size_t)blockIdx.y * m + first + r] = whole;
        else
            atomicAdd(y + first + r, whole);
    }
}

extern "C" __global__ void combine(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int m,
                                   int k, float *__restrict__ partial) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (!COMBINE || i >= m) return;
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part++) sum += partial[(size_t)part * m + i];
    y[i] = sum;
}
