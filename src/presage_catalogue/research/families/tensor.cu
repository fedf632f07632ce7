// presage: tune BM = 64, 128, 32
// presage: tune BN = 64, 128, 32
// presage: tune BK = 16, 32
// presage: tune TM = 32, 16
// presage: tune TN = 32, 16, 64
// presage: tune LANES = 32
// presage: tune TERMS = 3, 1
// presage: tune ORDER = 0, 1
// presage: where BM * BN >= 2 * TM * TN and BM * BN <= 8 * TM * TN and BN >= TN and TM * TN <= 1024 and TM + TN > 32
// presage: where (TERMS == 3 or (BM == 64 and ORDER == 0 and BK == 16)) and (ORDER == 0 or BM == BN)
//
// Every stage is a launch on the tensor cores: each factor is the sum of two TF32 numbers, and TERMS of their products
// are added up. A tile of BM * BN is summed BK terms at a time from zero there and added to the total by the ordinary
// units, since tensor cores round sums towards zero. A warp computes TM * TN elements. ORDER says which index of the
// left-hand side neighbouring threads fetch.

#define THREADS ((BM / TM) * (BN / TN) * LANES)
#define ROWS (TM / 16)
#define COLS (TN / 8)
// The padding puts the rows that a warp reads together into different banks.
#define A_PITCH (BK + 4)
#define B_PITCH (BN + 8)

$split_tf32$

__device__ float *tile_memory() {
    __shared__ __align__(16) float memory[BM * A_PITCH + $most$ * BK * B_PITCH];
    return memory;
}

// For each i, j of one tile: store(i, j, s) with s[q] = sum over p < depth of left(i, p) * right(p, j, q), q < P.
template <int P, class Left, class Right, class Store>
__device__ void product(int tile, int rows, int cols, int depth, Left left, Right right, Store store) {
    float *a = tile_memory(), *b = a + BM * A_PITCH;
    const int across = (cols + BN - 1) / BN, row = tile / across * BM, col = tile % across * BN;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane / 4, in_quad = lane % 4;
    const int row0 = warp / (BN / TN) * TM, col0 = warp % (BN / TN) * TN;
    float total[P][ROWS][COLS][4] = {};
    for (int start = 0; start < depth; start += BK) {
        __syncthreads();
        for (int e = threadIdx.x; e < BM * BK; e += THREADS) {
            const int i = ORDER ? e % BM : e / BK, p = ORDER ? e / BM : e % BK;
            a[i * A_PITCH + p] = row + i < rows && start + p < depth ? left(row + i, start + p) : 0.0f;
        }
        for (int e = threadIdx.x; e < BN * BK; e += THREADS) {
            const int j = e % BN, p = e / BN;
            const bool inside = col + j < cols && start + p < depth;
#pragma unroll
            for (int q = 0; q < P; q++) b[(q * BK + p) * B_PITCH + j] = inside ? right(start + p, col + j, q) : 0.0f;
        }
        __syncthreads();
        float sum[P][ROWS][COLS][4] = {};
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            Split<4> l[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int u = 0; u < 4; u++)
                    l[i].set(u, a[(row0 + i * 16 + quad + u % 2 * 8) * A_PITCH + k + in_quad + u / 2 * 4]);
#pragma unroll
            for (int q = 0; q < P; q++)
#pragma unroll
                for (int j = 0; j < COLS; j++) {
                    Split<2> r;
#pragma unroll
                    for (int u = 0; u < 2; u++)
                        r.set(u, b[(q * BK + k + in_quad + u * 4) * B_PITCH + col0 + j * 8 + quad]);
#pragma unroll
                    for (int i = 0; i < ROWS; i++) {
                        if (TERMS == 3) mma(sum[q][i][j], l[i].low, r.high), mma(sum[q][i][j], l[i].high, r.low);
                        mma(sum[q][i][j], l[i].high, r.high);
                    }
                }
        }
#pragma unroll
        for (int q = 0; q < P; q++)
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < COLS; j++)
#pragma unroll
                    for (int u = 0; u < 4; u++) total[q][i][j][u] += sum[q][i][j][u];
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++)
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int r = row + row0 + i * 16 + quad + u / 2 * 8, c = col + col0 + j * 8 + in_quad * 2 + u % 2;
                float s[P];
#pragma unroll
                for (int q = 0; q < P; q++) s[q] = total[q][i][j][u];
                if (r < rows && c < cols) store(r, c, s);
            }
}

$stages$
