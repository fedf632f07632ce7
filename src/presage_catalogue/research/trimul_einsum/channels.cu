// presage: problem trimul_einsum
// presage: tune BH = 32, 16, 8
// presage: tune PI = 2, 4, 1
// presage: tune PJ = 4, 2
// presage: tune TI = 4, 8, 2
// presage: tune TJ = 4, 8, 2
// presage: tune BK = 4, 2, 0
// presage: where BH * PI * PJ >= 64 and TI * TJ <= 32 and (BK != 2 or TI == TJ) and (BK != 0 or PI == 2)
// presage: where BH != 8 or (PI == 4 and BK == 4)
// presage: entry contract
// presage: grid cdiv(n, PI * TI) * cdiv(n, PJ * TJ), cdiv(hidden, BH)
// presage: block BH, PI * PJ
//
// A thread keeps to one channel, neighbours to neighbouring channels, so that nothing needs to be transposed. It sums TI
// * TJ pairs (i, j); PI * PJ such threads form a block, which stages BK steps of k in shared memory, or none for BK = 0.

#define STEPS (BK ? BK : 1)

extern "C" __global__ void __launch_bounds__(BH * PI * PJ)
contract(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ y, int n, int hidden) {
    __shared__ float a[STEPS][PI * TI][BH], b[STEPS][PJ * TJ][BH];
    const int across = (n + PJ * TJ - 1) / (PJ * TJ), x = threadIdx.x, t = threadIdx.y;
    const int i0 = blockIdx.x / across * PI * TI, j0 = blockIdx.x % across * PJ * TJ;
    const int ti = t / PJ * TI, tj = t % PJ * TJ, h = blockIdx.y * BH + x, channel = min(h, hidden - 1);
    float sum[TI][TJ] = {};
    for (int start = 0; start < n; start += STEPS) {
        if (BK) {
            __syncthreads();
            for (int e = t; e < STEPS * PI * TI; e += PI * PJ) {
                const int i = e / STEPS, k = e % STEPS;
                a[k][i][x] = i0 + i < n && start + k < n ? left[((i0 + i) * n + start + k) * hidden + channel] : 0.0f;
            }
            for (int e = t; e < STEPS * PJ * TJ; e += PI * PJ) {
                const int j = e / STEPS, k = e % STEPS;
                b[k][j][x] = j0 + j < n && start + k < n ? right[((j0 + j) * n + start + k) * hidden + channel] : 0.0f;
            }
            __syncthreads();
        }
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            float l[TI], r[TJ];
#pragma unroll
            for (int i = 0; i < TI; i++)
                l[i] = BK ? a[k][ti + i][x] : left[(min(i0 + ti + i, n - 1) * n + start) * hidden + channel];
#pragma unroll
            for (int j = 0; j < TJ; j++)
                r[j] = BK ? b[k][tj + j][x] : right[(min(j0 + tj + j, n - 1) * n + start) * hidden + channel];
#pragma unroll
            for (int i = 0; i < TI; i++)
#pragma unroll
                for (int j = 0; j < TJ; j++) sum[i][j] += l[i] * r[j];
        }
    }
    if (h >= hidden) return;
#pragma unroll
    for (int i = 0; i < TI; i++)
#pragma unroll
        for (int j = 0; j < TJ; j++)
            if (i0 + ti + i < n && j0 + tj + j < n) y[((i0 + ti + i) * n + j0 + tj + j) * hidden + h] = sum[i][j];
}
