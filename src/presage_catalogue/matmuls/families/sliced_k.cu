// presage: entry $entry$
// presage: tune WARPS = 8, 4, 16, 32
// presage: tune ROWS = 4, 1, 2, 8, 16
// presage: tune COLS = 1, 2, 4
// presage: tune UNROLL = 2, 1, 4
// presage: where ROWS * COLS <= 32 and UNROLL * COLS <= 8
// presage: where UNROLL == 2 or WARPS <= 8
// presage: where WARPS * ROWS * COLS <= 256
// presage: grid $batches$ * cdiv($m$, ROWS) * cdiv(n, 32 * COLS)
// presage: block 32 * WARPS
// presage: shared 128 * $factors$ * WARPS * ROWS * COLS
//
// Every warp of a block takes each WARPS-th term of the same ROWS * 32 * COLS sums, straight from memory and UNROLL at a
// time; their sums meet in shared memory.
$operands$

#define BN (32 * COLS)

extern "C" __global__ void __launch_bounds__(32 * WARPS) $entry$($arguments$) {
    extern __shared__ float sums[]; // by warp, factor, row and column
    const int rows = $m$, down = (rows + ROWS - 1) / ROWS, across = (n + BN - 1) / BN;
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across), row = tile / across * ROWS, col = tile % across * BN;
    $select$
    const Right *const rights[] = {$rights$};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum[FACTORS][ROWS][COLS] = {};
#pragma unroll UNROLL
    for (int p = warp; p < k; p += WARPS) {
        float right[FACTORS][COLS];
#pragma unroll
        for (int f = 0; f < FACTORS; f++)
#pragma unroll
            for (int j = 0; j < COLS; j++)
                right[f][j] = number(rights[f][place<RIGHT_ALONG_K>(min(col + j * 32 + lane, n - 1), p, n, k)]);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float left = number($left$[place<LEFT_ALONG_K>(min(row + i, rows - 1), p, rows, k)]);
#pragma unroll
            for (int f = 0; f < FACTORS; f++)
#pragma unroll
                for (int j = 0; j < COLS; j++) sum[f][i][j] += left * right[f][j];
        }
    }
#pragma unroll
    for (int f = 0; f < FACTORS; f++)
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++)
                sums[((warp * FACTORS + f) * ROWS + i) * BN + j * 32 + lane] = sum[f][i][j];
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * BN; e += 32 * WARPS) {
        const int i = row + e / BN, j = col + e % BN;
        if (i >= rows || j >= n) continue;
        float total[2] = {};
#pragma unroll
        for (int f = 0; f < FACTORS; f++)
            for (int w = 0; w < WARPS; w++) total[f] += sums[(w * FACTORS + f) * ROWS * BN + e];
        put($out$ + (size_t)i * n + j, finish(total[0], total[1], i, j, rows, n$extra_arguments$));
    }
}
