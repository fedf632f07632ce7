// presage: tune BM = 16, 8, 32
// presage: tune BN = 64, 32, 128
// presage: tune TM = 4, 2, 1
// presage: tune TN = 4, 2, 1
// presage: tune LANES = 1, 4, 32
// presage: tune UNROLL = 1, 4
// presage: tune SUM = float, double
// presage: where BM * BN * LANES >= 64 * TM * TN and BM * BN * LANES <= 1536 * TM * TN and TM + TN >= 3
// presage: where (LANES == 1 and BN != 128 and TN >= 2) or (LANES == 4 and BM == 16 and UNROLL == 1) or (TM == 4 and TN == 4 and BN == 32)
// presage: where (SUM == 'float' or (TM == 2 and TN == 4 and UNROLL == 4)) and (LANES == 1 or TM >= 2)
//
// Every stage is a launch without shared memory: LANES threads share a sum between them, for TM * TN elements at once,
// and read both sides where they lie. UNROLL steps of the sum are taken together, and SUM is what it is kept in.

#define THREADS ((BM / TM) * (BN / TN) * LANES)

// For each i, j of one tile: store(i, j, s) with s[q] = sum over p < depth of left(i, p) * right(p, j, q), q < P.
template <int P, class Left, class Right, class Store>
__device__ void product(int tile, int rows, int cols, int depth, Left left, Right right, Store store) {
    const int across = (cols + BN - 1) / BN, lane = threadIdx.x % LANES, thread = threadIdx.x / LANES;
    const int row = tile / across * BM + thread / (BN / TN), col = tile % across * BN + thread % (BN / TN);
    SUM sum[TM][TN][P] = {};
#pragma unroll UNROLL
    for (int p = lane; p < depth; p += LANES) {
        float l[TM];
#pragma unroll
        for (int i = 0; i < TM; i++) l[i] = left(min(row + i * (BM / TM), rows - 1), p);
#pragma unroll
        for (int j = 0; j < TN; j++)
#pragma unroll
            for (int q = 0; q < P; q++) {
                const float r = right(p, min(col + j * (BN / TN), cols - 1), q);
#pragma unroll
                for (int i = 0; i < TM; i++) sum[i][j][q] += (SUM)l[i] * r;
            }
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            float total[P];
#pragma unroll
            for (int q = 0; q < P; q++) {
                SUM s = sum[i][j][q];
                for (int by = LANES / 2; by; by /= 2) s += __shfl_xor_sync(0xffffffffu, s, by);
                total[q] = s;
            }
            const int r = row + i * (BM / TM), c = col + j * (BN / TN);
            if (lane == (i * TN + j) % LANES && r < rows && c < cols) store(r, c, total);
        }
}

$stages$
