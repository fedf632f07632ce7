// presage: entry $entry$
// presage: tune BM = 64, 32, 128, 16
// presage: tune BN = 64, 32, 128
// presage: tune BK = 8, 16, 32
// presage: tune TM = 8, 4
// presage: tune TN = 8, 4
// presage: tune AHEAD = 1, 0
// presage: tune GROUP = 8, 1
// presage: where BM * BN <= 512 * TM * TN and BM * BN >= 32 * TM * TN and TM >= TN
// presage: where GROUP == 8 or (AHEAD == 1 and BK == 16)
// presage: where AHEAD == 1 or BK >= 16
// presage: where BM > 16 or (TM == 4 and BK <= 16)
// presage: grid $batches$ * cdiv($m$, BM) * cdiv(n, BN)
// presage: block (BM // TM) * (BN // TN)
//
// A block computes BM * BN elements from tiles in shared memory, a thread TM * TN of them in registers. The next tile
// is fetched while this one is multiplied; AHEAD has two buffers and so one barrier less per tile. Blocks go down
// GROUP rows of tiles at a time, so that neighbours share tiles in cache.
$operands$

#define THREADS ((BM / TM) * (BN / TN))

// WIDTH rows or columns of a factor, BK terms of each, on their way to shared memory, where each term is a line.
template <bool ALONG_K, int WIDTH> struct Piece {
    static const int LOADS = (WIDTH * BK / 4 + THREADS - 1) / THREADS;
    float4 held[LOADS];

    template <class T> __device__ void load(const T *from, int first, int p, int outer, int k, int end) {
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int e = threadIdx.x + u * THREADS;
            const int o = ALONG_K ? e / (BK / 4) : e % (WIDTH / 4) * 4;
            const int q = ALONG_K ? e % (BK / 4) * 4 : e / (WIDTH / 4);
            if (e < WIDTH * BK / 4) held[u] = neighbours<ALONG_K>(from, first + o, p + q, outer, k, end);
        }
    }

    __device__ void store(float (*to)[WIDTH + 4]) {
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int e = threadIdx.x + u * THREADS;
            if (e >= WIDTH * BK / 4) continue;
            if (ALONG_K) {
                const int o = e / (BK / 4), q = e % (BK / 4) * 4;
                to[q][o] = held[u].x, to[q + 1][o] = held[u].y, to[q + 2][o] = held[u].z, to[q + 3][o] = held[u].w;
            } else {
                *(float4 *)&to[e / (WIDTH / 4)][e % (WIDTH / 4) * 4] = held[u];
            }
        }
    }
};

// A thread's TM rows are groups of four, BM / (TM / 4) apart: neighbours then read neighbouring words. So with columns.
__device__ __forceinline__ int row_of(int i) { return i / 4 * (BM / (TM / 4)) + threadIdx.x / (BN / TN) * 4 + i % 4; }
__device__ __forceinline__ int col_of(int j) { return j / 4 * (BN / (TN / 4)) + threadIdx.x % (BN / TN) * 4 + j % 4; }

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    __shared__ __align__(16) float lefts[AHEAD + 1][BK][BM + 4], tiles[AHEAD + 1][FACTORS][BK][BN + 4];
    const int rows = $m$, down = (rows + BM - 1) / BM, across = (n + BN - 1) / BN;
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across);
    const int above = tile / (GROUP * across) * GROUP, height = min(GROUP, down - above);
    const int inside = tile % (GROUP * across);
    const int row = (above + inside % height) * BM, col = inside / height * BN;
    $select$
    const Right *const rights[] = {$rights$};

    float sum[2][TM][TN] = {};
    Piece<LEFT_ALONG_K, BM> next_left;
    Piece<RIGHT_ALONG_K, BN> next[FACTORS];
    const auto load = [&](int p) {
        next_left.load($left$, row, p, rows, k, k);
#pragma unroll
        for (int f = 0; f < FACTORS; f++) next[f].load(rights[f], col, p, n, k, k);
    };
    load(0);
    for (int p = 0, buffer = 0; p < k; p += BK) {
        if (!AHEAD) __syncthreads(); // the last tile has been read
        next_left.store(lefts[buffer]);
#pragma unroll
        for (int f = 0; f < FACTORS; f++) next[f].store(tiles[buffer][f]);
        __syncthreads();
        if (p + BK < k) load(p + BK);
#pragma unroll
        for (int q = 0; q < BK; q++) {
            alignas(16) float left[TM], right[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) *(float4 *)(left + i) = *(const float4 *)&lefts[buffer][q][row_of(i)];
#pragma unroll
            for (int f = 0; f < FACTORS; f++) {
#pragma unroll
                for (int j = 0; j < TN; j += 4) *(float4 *)(right + j) = *(const float4 *)&tiles[buffer][f][q][col_of(j)];
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++) sum[f][i][j] += left[i] * right[j];
            }
        }
        if (AHEAD) buffer ^= 1;
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int r = row + row_of(i), q = col + col_of(j);
            if (r >= rows || q >= n) continue;
            float out[4];
#pragma unroll
            for (int u = 0; u < 4; u++)
                out[u] = finish(sum[0][i][j + u], sum[1][i][j + u], r, min(q + u, n - 1), rows, n$extra_arguments$);
            Out *to = $out$ + (size_t)r * n + q;
            if (n % 4 == 0) {
                put_four(to, make_float4(out[0], out[1], out[2], out[3]));
                continue;
            }
#pragma unroll
            for (int u = 0; u < 4; u++)
                if (q + u < n) put(to + u, out[u]);
        }
    }
}
