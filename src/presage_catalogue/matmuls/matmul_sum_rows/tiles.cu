// presage: problem matmul_sum_rows
// presage: entry clear
// presage: grid cdiv(m, 256)
// presage: block 256
// presage: entry products
// presage: tune BM = 64, 32, 128
// presage: tune BN = 64, 128, 32
// presage: tune BK = 16, 8, 32
// presage: tune TM = 4, 8
// presage: tune STRIPE = 1, 4, 32
// presage: tune COMBINE = 1, 0
// presage: where BM * BN <= 1024 * TM * 4 and BM * BN >= 32 * TM * 4
// presage: where COMBINE == 1 or (BK == 16 and TM == 4)
// presage: grid cdiv(m, BM), cdiv(cdiv(n, BN), STRIPE)
// presage: block (BM // TM) * (BN // 4)
// presage: entry combine
// presage: grid cdiv(m, 256)
// presage: block 256
// presage: scratch partial = 4 * m * cdiv(cdiv(n, BN), STRIPE)
//
// The whole product, in tiles of BM * BN from shared memory with TM * 4 elements per thread, added up in registers over
// STRIPE tiles of a row. Their sums go to memory for the last launch to add up, or with COMBINE 0 to the result atomically.

#define ACROSS (BN / 4)
#define THREADS ((BM / TM) * ACROSS)

extern "C" __global__ void clear(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y, int m,
                                 int n, int k, float *__restrict__ partial) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < m) y[i] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
products(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y, int m, int n, int k,
         float *__restrict__ partial) {
    __shared__ __align__(16) float left[BK][BM + 4], right[BK][BN + 4];
    __shared__ float sums[BM][ACROSS + 1];
    const int row = blockIdx.x * BM, x = threadIdx.x % ACROSS, y0 = threadIdx.x / ACROSS * TM;
    float total[TM] = {};
    for (int s = 0; s < STRIPE; s++) {
        const int col = (blockIdx.y * STRIPE + s) * BN;
        if (col >= n) break;
        float sum[TM][4] = {};
        for (int start = 0; start < k; start += BK) {
            for (int e = threadIdx.x; e < BM * BK; e += THREADS) {
                const int i = row + e / BK, p = start + e % BK;
                left[e % BK][e / BK] = i < m && p < k ? a[(size_t)i * k + p] : 0.0f;
            }
            for (int e = threadIdx.x; e < BK * BN; e += THREADS) {
                const int p = start + e / BN, j = col + e % BN;
                right[e / BN][e % BN] = p < k && j < n ? b[(size_t)p * n + j] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int p = 0; p < BK; p++) {
                const float4 factor = *(const float4 *)&right[p][x * 4];
#pragma unroll
                for (int i = 0; i < TM; i++) {
                    const float other = left[p][y0 + i];
                    sum[i][0] += other * factor.x, sum[i][1] += other * factor.y;
                    sum[i][2] += other * factor.z, sum[i][3] += other * factor.w;
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < TM; i++) total[i] += (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
    }
#pragma unroll
    for (int i = 0; i < TM; i++) sums[y0 + i][x] = total[i];
    __syncthreads();
    for (int i = threadIdx.x; i < BM; i += THREADS) {
        float whole = 0.0f;
        for (int t = 0; t < ACROSS; t++) whole += sums[i][t];
        if (row + i >= m) continue;
        if (COMBINE)
            partial[(size_t)blockIdx.y * m + row + i] = whole;
        else
            atomicAdd(y + row + i, whole);
    }
}

extern "C" __global__ void combine(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ y, int m,
                                   int n, int k, float *__restrict__ partial) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (!COMBINE || i >= m) return;
    const int stripes = ((n + BN - 1) / BN + STRIPE - 1) / STRIPE;
    float sum = 0.0f;
    for (int s = 0; s < stripes; s++) sum += partial[(size_t)s * m + i];
    y[i] = sum;
}
