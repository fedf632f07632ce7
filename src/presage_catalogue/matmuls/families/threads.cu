// presage: entry $entry$
// presage: tune ACROSS = 32, 8, 16, 64
// presage: tune DOWN = 8, 4, 16, 32
// presage: tune ROWS = 1, 2, 4, 8
// presage: tune UNROLL = 4, 1, 8
// presage: tune REST = 1, 0
// presage: tune SWAP = 0, 1
// presage: where ACROSS * DOWN >= 64
// presage: where REST == 1 or (UNROLL == 8 and ACROSS == 32)
// presage: where SWAP == 0 or (REST == 1 and UNROLL == 4 and ACROSS == 32)
// presage: where UNROLL == 4 or ACROSS >= 32
// presage: where DOWN < 32 or ROWS == 1
// presage: where ACROSS >= 32 or DOWN <= 16
// presage: where UNROLL > 1 or DOWN == 8
// presage: grid $batches$ * cdiv($m$, DOWN * ROWS) * cdiv(n, ACROSS)
// presage: block ACROSS * DOWN
//
// A thread computes ROWS elements of a column straight from memory, UNROLL terms at a time, and with REST those that
// are left over. Neighbouring threads have neighbouring columns, with SWAP neighbouring rows.
$operands$

extern "C" __global__ void __launch_bounds__(ACROSS * DOWN) $entry$($arguments$) {
    const int rows = $m$, across = (n + ACROSS - 1) / ACROSS, down = (rows + DOWN * ROWS - 1) / (DOWN * ROWS);
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across);
    $select$
    const Right *const rights[] = {$rights$};
    const int x = SWAP ? threadIdx.x / DOWN : threadIdx.x % ACROSS;
    const int y = SWAP ? threadIdx.x % DOWN : threadIdx.x / ACROSS;
    const int j = tile % across * ACROSS + x, first = tile / across * DOWN * ROWS + y;
    if (j >= n) return;
    float sum[2][ROWS] = {};
    const auto add = [&](int p) {
        float factor[FACTORS];
#pragma unroll
        for (int f = 0; f < FACTORS; f++) factor[f] = number(rights[f][place<RIGHT_ALONG_K>(j, p, n, k)]);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = min(first + r * DOWN, rows - 1);
            const float other = number($left$[place<LEFT_ALONG_K>(i, p, rows, k)]);
#pragma unroll
            for (int f = 0; f < FACTORS; f++) sum[f][r] += other * factor[f];
        }
    };
    const int whole = k / UNROLL * UNROLL;
    for (int p = 0; p < whole; p += UNROLL) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) add(p + u);
    }
    for (int p = whole; REST && p < k; p++) add(p);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int i = first + r * DOWN;
        if (i < rows) put($out$ + (size_t)i * n + j, finish(sum[0][r], sum[1][r], i, j, rows, n$extra_arguments$));
    }
}
