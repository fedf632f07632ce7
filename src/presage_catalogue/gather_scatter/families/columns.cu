// presage: entry $entry$
// presage: tune ACROSS = 32, 128, 512
// presage: tune DOWN = 8, 1, 4
// presage: tune SPAN = 4, 1, 32
// presage: tune UNROLL = 1, 4
// presage: tune STRIDED = 1, 0
// presage: where SPAN >= UNROLL
// presage: where SPAN > 1 or STRIDED == 1
// presage: grid cdiv($cols$, ACROSS) * cdiv($rows$, DOWN * SPAN)
// presage: block ACROSS, DOWN
//
// A thread keeps to one column of y and goes down SPAN rows of it: DOWN apart with STRIDED, else neighbours. UNROLL of
// its elements are on their way at once.
$include$

$fetcher$

extern "C" __global__ void __launch_bounds__(ACROSS *DOWN) $entry$($arguments$) {
    const int out_rows = $rows$, out_cols = $cols$, across = (out_cols + ACROSS - 1) / ACROSS;
    const int c = blockIdx.x % across * ACROSS + threadIdx.x;
    const int first = blockIdx.x / across * DOWN * SPAN + (STRIDED ? threadIdx.y : threadIdx.y * SPAN);
    if (c >= out_cols) return;
    for (int k = 0; k < SPAN; k += UNROLL) {
        $type$ out[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            fetch<1>($call$, min(first + (k + u) * (STRIDED ? DOWN : 1), out_rows - 1), c, out + u);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int r = first + (k + u) * (STRIDED ? DOWN : 1);
            if (r < out_rows) $out$[(size_t)r * out_cols + c] = out[u];
        }
    }
}
