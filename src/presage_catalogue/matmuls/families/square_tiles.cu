// presage: entry $entry$
// presage: tune TILE = 16, 32, 64
// presage: tune DEPTH = 16, 32, 8, 64
// presage: tune COARSE = 1, 2, 4, 8
// presage: tune PAD = 1, 0
// presage: tune UNROLL = 8, 1
// presage: where COARSE <= TILE // 8 and (PAD == 1 or UNROLL == 8)
// presage: where TILE < 64 or COARSE > 1 or (UNROLL == 8 and PAD == 1)
// presage: where UNROLL == 8 or DEPTH >= 32
// presage: where COARSE > 2 or TILE < 64 or DEPTH <= 32
// presage: grid $batches$ * cdiv($m$, TILE) * cdiv(n, TILE)
// presage: block TILE, TILE // COARSE
//
// A block computes TILE * TILE elements, DEPTH terms at a time from tiles in shared memory with rows of PAD more words;
// a thread has COARSE of them, below each other.
$operands$

#define LINES (TILE / COARSE)

extern "C" __global__ void __launch_bounds__(TILE * LINES) $entry$($arguments$) {
    __shared__ float lefts[TILE][DEPTH + PAD], tiles[FACTORS][DEPTH][TILE + PAD];
    const int rows = $m$, across = (n + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across), row = tile / across * TILE, col = tile % across * TILE;
    $select$
    const Right *const rights[] = {$rights$};
    const int x = threadIdx.x, y = threadIdx.y, thread = y * TILE + x;
    float sum[2][COARSE] = {};
    for (int start = 0; start < k; start += DEPTH) {
        for (int e = thread; e < TILE * DEPTH; e += TILE * LINES) {
            const int i = LEFT_ALONG_K ? e / DEPTH : e % TILE, p = LEFT_ALONG_K ? e % DEPTH : e / TILE;
            const bool inside = row + i < rows && start + p < k;
            lefts[i][p] = inside ? number($left$[place<LEFT_ALONG_K>(row + i, start + p, rows, k)]) : 0.0f;
        }
#pragma unroll
        for (int f = 0; f < FACTORS; f++)
            for (int e = thread; e < TILE * DEPTH; e += TILE * LINES) {
                const int j = RIGHT_ALONG_K ? e / DEPTH : e % TILE, p = RIGHT_ALONG_K ? e % DEPTH : e / TILE;
                const bool inside = col + j < n && start + p < k;
                tiles[f][p][j] = inside ? number(rights[f][place<RIGHT_ALONG_K>(col + j, start + p, n, k)]) : 0.0f;
            }
        __syncthreads();
#pragma unroll UNROLL
        for (int p = 0; p < DEPTH; p++)
#pragma unroll
            for (int f = 0; f < FACTORS; f++) {
                const float factor = tiles[f][p][x];
#pragma unroll
                for (int r = 0; r < COARSE; r++) sum[f][r] += lefts[y + r * LINES][p] * factor;
            }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < COARSE; r++) {
        const int i = row + y + r * LINES, j = col + x;
        if (i < rows && j < n)
            put($out$ + (size_t)i * n + j, finish(sum[0][r], sum[1][r], i, j, rows, n$extra_arguments$));
    }
}
