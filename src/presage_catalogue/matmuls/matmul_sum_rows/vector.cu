// presage: problem matmul_sum_rows
// presage: entry sums
// presage: tune TEAM = 32, 256, 1024
// presage: tune BLOCK = 256, 512, 1024
// presage: tune VECTOR = 1, 4
// presage: tune ROWS = 32, 8, 256
// presage: tune UNROLL = 4, 1
// presage: tune HALF = 0, 1
// presage: where TEAM <= BLOCK and (UNROLL == 4 or VECTOR == 1)
// presage: where HALF == 0 or (VECTOR == 4 and ROWS == 32)
// presage: grid cdiv(k, BLOCK // TEAM)
// presage: block BLOCK
// presage: entry dots
// presage: grid cdiv(m, 256 // ROWS)
// presage: block 256
// presage: scratch column = 4 * k
//
// The rows of b are added up first, TEAM threads and VECTOR elements at a time for each; then each row of a is multiplied
// with their sums by ROWS threads. HALF keeps the sums in half precision.
#include <cuda_fp16.h>

#if HALF
typedef half Kept;
__device__ float number(half v) { return __half2float(v); }
__device__ half kept(float v) { return __float2half(v); }
#else
typedef float Kept;
__device__ float number(float v) { return v; }
__device__ float kept(float v) { return v; }
#endif

// The sum over groups of WIDTH neighbouring threads of a block of `threads`, in the first of each group.
template <int WIDTH, int THREADS> __device__ float group_sum(float v) {
    __shared__ float sums[THREADS / 32];
#pragma unroll
    for (int by = (WIDTH < 32 ? WIDTH : 32) / 2; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    if (WIDTH <= 32) return v;
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < WIDTH / 32; w++) v += sums[threadIdx.x / WIDTH * (WIDTH / 32) + w];
    return v;
}

extern "C" __global__ void __launch_bounds__(BLOCK) sums(const float *__restrict__ a, const float *__restrict__ b,
                                                         float *__restrict__ y, int m, int n, int k,
                                                         Kept *__restrict__ column) {
    const int p = blockIdx.x * (BLOCK / TEAM) + threadIdx.x / TEAM, member = threadIdx.x % TEAM;
    const float *row = b + (size_t)min(p, k - 1) * n;
    float sum = 0.0f;
    if (VECTOR == 4 && n % 4 == 0) {
#pragma unroll UNROLL
        for (int j = member * 4; j < n; j += TEAM * 4) {
            const float4 v = *(const float4 *)(row + j);
            sum += (v.x + v.y) + (v.z + v.w);
        }
    } else {
#pragma unroll UNROLL
        for (int j = member; j < n; j += TEAM) sum += row[j];
    }
    sum = group_sum<TEAM, BLOCK>(sum);
    if (member == 0 && p < k) column[p] = kept(sum);
}

extern "C" __global__ void __launch_bounds__(256) dots(const float *__restrict__ a, const float *__restrict__ b,
                                                       float *__restrict__ y, int m, int n, int k,
                                                       Kept *__restrict__ column) {
    const int i = blockIdx.x * (256 / ROWS) + threadIdx.x / ROWS, member = threadIdx.x % ROWS;
    const float *row = a + (size_t)min(i, m - 1) * k;
    float sum = 0.0f;
#pragma unroll UNROLL
    for (int p = member; p < k; p += ROWS) sum += row[p] * number(column[p]);
    sum = group_sum<ROWS, 256>(sum);
    if (member == 0 && i < m) y[i] = sum;
}
