// presage: tune BM = 64, 32, 128
// presage: tune BN = 64, 32, 128
// presage: tune BK = 16, 8, 32
// presage: tune TM = 4, 8
// presage: tune TN = 4, 8
// presage: tune LANES = 1
// presage: tune SPREAD = 1, 0
// presage: tune ORDER = 0, 1
// presage: tune TAIL = 1, 0
// presage: where BM * BN >= 32 * TM * TN and BM * BN <= 512 * TM * TN
// presage: where (BK == 16 or (BM == BN and SPREAD == 1)) and (SPREAD == 1 or ORDER == 0)
// presage: where (TAIL == 1 or (BM == 64 and BK != 8 and SPREAD == 1 and TM == 4)) and (TM == TN or BK == 16)
//
// Every stage is a launch that multiplies tiles of BM * BK and BK * BN elements from shared memory; a thread sums TM *
// TN elements in registers, next to each other or (SPREAD) as far apart as there are threads. ORDER says which index of
// the left-hand side neighbouring threads fetch, and TAIL whether the last tile of a sum may be a part of one.

#define THREADS ((BM / TM) * (BN / TN) * LANES)
#define A_PITCH (BM + 4)

__device__ float *tile_memory() {
    __shared__ __align__(16) float memory[BK * (A_PITCH + $most$ * BN)];
    return memory;
}

// For each i, j of one tile: store(i, j, s) with s[q] = sum over p < depth of left(i, p) * right(p, j, q), q < P.
template <int P, class Left, class Right, class Store>
__device__ void product(int tile, int rows, int cols, int depth, Left left, Right right, Store store) {
    float *a = tile_memory(), *b = a + BK * A_PITCH;
    const int across = (cols + BN - 1) / BN, row = tile / across * BM, col = tile % across * BN;
    const int ti = threadIdx.x / (BN / TN), tj = threadIdx.x % (BN / TN);
    const int in = SPREAD ? ti : ti * TM, jn = SPREAD ? tj : tj * TN;
    const int di = SPREAD ? BM / TM : 1, dj = SPREAD ? BN / TN : 1;
    float sum[TM][TN][P] = {};
    const int end = TAIL ? depth : max(depth / BK * BK, min(depth, BK));
    for (int start = 0; start < end; start += BK) {
        __syncthreads();
        for (int e = threadIdx.x; e < BM * BK; e += THREADS) {
            const int i = ORDER ? e % BM : e / BK, p = ORDER ? e / BM : e % BK;
            a[p * A_PITCH + i] = row + i < rows && start + p < depth ? left(row + i, start + p) : 0.0f;
        }
        for (int e = threadIdx.x; e < BN * BK; e += THREADS) {
            const int j = e % BN, p = e / BN;
            const bool inside = col + j < cols && start + p < depth;
#pragma unroll
            for (int q = 0; q < P; q++) b[(q * BK + p) * BN + j] = inside ? right(start + p, col + j, q) : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int p = 0; p < BK; p++) {
            float l[TM];
#pragma unroll
            for (int i = 0; i < TM; i++) l[i] = a[p * A_PITCH + in + i * di];
#pragma unroll
            for (int q = 0; q < P; q++)
#pragma unroll
                for (int j = 0; j < TN; j++) {
                    const float r = b[(q * BK + p) * BN + jn + j * dj];
#pragma unroll
                    for (int i = 0; i < TM; i++) sum[i][j][q] += l[i] * r;
                }
        }
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const int r = row + in + i * di, c = col + jn + j * dj;
            if (r < rows && c < cols) store(r, c, sum[i][j]);
        }
}

$stages$
