// presage: problem gdn_chunk_fwd_o
// presage: tune ROWS = 64, 32, 16
// presage: tune BV = 64, 32, 128
// presage: tune TT = 4, 2, 8
// presage: tune TV = 4, 1, 2
// presage: tune CAUSAL = 1, 0
// presage: tune PAD = 1, 0
// presage: where ROWS * BV >= 64 * TT * TV and ROWS * BV <= 512 * TT * TV and ROWS >= 4 * TT
// presage: where (CAUSAL == 1 or (BV == 64 and PAD == 1)) and (PAD == 1 or TV == 4)
// presage: entry output
// presage: grid cdiv(dv, BV), heads * chunks, 64 // ROWS
// presage: block (ROWS // TT) * (BV // TV)
// presage: shared 4 * (ROWS * (dk + PAD) + ROWS * (64 + PAD) + 64 * (dk + PAD))
//
// A block computes ROWS tokens and BV columns: queries and keys go to shared memory, then the scores, and a thread sums
// TT * TV outputs over the state and over the scores, of which CAUSAL leaves out those above the diagonal's block.

#define THREADS ((ROWS / TT) * (BV / TV))

extern "C" __global__ void __launch_bounds__(THREADS)
output(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v_new,
       const float *__restrict__ h, const float *__restrict__ g, float *__restrict__ o, int heads, int chunks, int dk,
       int dv) {
    extern __shared__ float memory[];
    const int pitch = dk + PAD, start = blockIdx.z * ROWS, thread = threadIdx.x;
    float *qs = memory, *ks = qs + ROWS * pitch, *scores = ks + 64 * pitch;
    const size_t first = (size_t)blockIdx.y * 64;
    const float *state = h + (size_t)blockIdx.y * dk * dv, *values = v_new + first * dv;
    for (int e = thread; e < ROWS * dk; e += THREADS) qs[e / dk * pitch + e % dk] = q[(first + start) * dk + e];
    for (int e = thread; e < 64 * dk; e += THREADS) ks[e / dk * pitch + e % dk] = k[first * dk + e];
    __syncthreads();
    for (int e = thread; e < ROWS * 64 / TT; e += THREADS) {
        const int j = e % 64, i = e / 64 * TT;
        float sum[TT] = {};
        for (int d = 0; d < dk; d++) {
            const float key = ks[j * pitch + d];
#pragma unroll
            for (int u = 0; u < TT; u++) sum[u] += qs[(i + u) * pitch + d] * key;
        }
#pragma unroll
        for (int u = 0; u < TT; u++)
            scores[(i + u) * (64 + PAD) + j] =
                j <= start + i + u ? sum[u] * expf(g[first + start + i + u] - g[first + j]) : 0.0f;
    }
    __syncthreads();
    const int i = thread / (BV / TV) * TT, col = blockIdx.x * BV + thread % (BV / TV);
    float sum[TT][TV] = {};
    for (int d = 0; d < dk; d++) {
#pragma unroll
        for (int v = 0; v < TV; v++) {
            const float s = state[d * dv + min(col + v * (BV / TV), dv - 1)];
#pragma unroll
            for (int u = 0; u < TT; u++) sum[u][v] += qs[(i + u) * pitch + d] * s;
        }
    }
#pragma unroll
    for (int u = 0; u < TT; u++)
#pragma unroll
        for (int v = 0; v < TV; v++) sum[u][v] *= expf(g[first + start + i + u]);
    const int end = CAUSAL ? start + ROWS : 64;
    for (int j = 0; j < end; j++) {
#pragma unroll
        for (int v = 0; v < TV; v++) {
            const float s = values[j * dv + min(col + v * (BV / TV), dv - 1)];
#pragma unroll
            for (int u = 0; u < TT; u++) sum[u][v] += scores[(i + u) * (64 + PAD) + j] * s;
        }
    }
    const float scale = 1.0f / sqrtf((float)dk);
#pragma unroll
    for (int u = 0; u < TT; u++)
#pragma unroll
        for (int v = 0; v < TV; v++)
            if (col + v * (BV / TV) < dv) o[(first + start + i + u) * dv + col + v * (BV / TV)] = sum[u][v] * scale;
}
