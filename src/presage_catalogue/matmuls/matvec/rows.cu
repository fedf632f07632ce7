// presage: problem matvec
// presage: entry matvec
// presage: tune TEAM = 32, 16, 4, 1
// presage: tune ROWS = 1, 2, 4
// presage: tune BLOCK = 256, 128, 512
// presage: tune UNROLL = 4, 1, 2
// presage: tune STREAM = 0, 1
// presage: tune REST = 1, 0
// presage: where REST == 1 or (UNROLL == 4 and STREAM == 0 and BLOCK == 256)
// presage: where TEAM == 32 or UNROLL != 2
// presage: where STREAM == 0 or TEAM >= 16
// presage: grid cdiv(m, BLOCK // TEAM * ROWS)
// presage: block BLOCK
//
// TEAM threads of a warp have ROWS rows, four neighbouring terms at a time where rows start at multiples of them, and
// UNROLL times that before they wait; with REST they take the terms that are left over. STREAM does not keep a in cache.

__device__ float4 load(const float *from) { return STREAM ? __ldcs((const float4 *)from) : *(const float4 *)from; }
__device__ float dot(float4 u, float4 v) { return u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w; }

extern "C" __global__ void __launch_bounds__(BLOCK)
matvec(const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y, int m, int k) {
    const int member = threadIdx.x % TEAM, first = (blockIdx.x * (BLOCK / TEAM) + threadIdx.x / TEAM) * ROWS;
    const float *row[ROWS];
    float sum[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) row[r] = a + (size_t)min(first + r, m - 1) * k;
    int done = 0;
    if (k % 4 == 0) {
        done = k / (4 * TEAM * UNROLL) * (4 * TEAM * UNROLL);
        for (int p = member * 4; p < done; p += 4 * TEAM * UNROLL) {
            float4 held[UNROLL][ROWS];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int r = 0; r < ROWS; r++) held[u][r] = load(row[r] + p + u * 4 * TEAM);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                const float4 factor = *(const float4 *)(x + p + u * 4 * TEAM);
#pragma unroll
                for (int r = 0; r < ROWS; r++) sum[r] += dot(held[u][r], factor);
            }
        }
    }
    if (REST || k % 4 != 0)
        for (int p = done + member; p < k; p += TEAM)
#pragma unroll
            for (int r = 0; r < ROWS; r++) sum[r] += row[r][p] * x[p];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int by = TEAM / 2; by > 0; by /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], by);
        if (member == 0 && first + r < m) y[first + r] = sum[r];
    }
}
