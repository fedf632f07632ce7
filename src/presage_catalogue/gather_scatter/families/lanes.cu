// presage: entry $entry$
// presage: tune LANES = 32, 8, 128, 512
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: tune ROWS = 1, 2, 4
// presage: tune HINT = 0, 1
// presage: where LANES <= THREADS
// presage: where HINT == 0 or VECTOR == 4
// presage: grid cdiv($rows$ * LANES, THREADS * ROWS)
// presage: block THREADS
//
// LANES threads walk along a row of y, or along ROWS of them side by side. HINT stores with the hint that nobody will
// read the result soon.
$include$

$fetch_and_put$

template <int N> __device__ __forceinline__ void walk($arguments$, int row, int lane) {
    const int out_cols = $cols$, out_rows = $rows$;
    for (int c = lane * N; c < out_cols; c += LANES * N) {
        Pack<$type$, N> out[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int r = min(row + k, out_rows - 1);
            if ($whole$) fetch<N>($call$, r, c, out[k].at);
            else
#pragma unroll
                for (int i = 0; i < N; i++) fetch<1>($call$, r, c + i, out[k].at + i);
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            if (row + k < out_rows) put((Pack<$type$, N> *)($out$ + (size_t)(row + k) * out_cols + c), out[k]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int row = (blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES) * ROWS, lane = threadIdx.x % LANES;
    if (row >= $rows$) return;
    if ($cols$ % VECTOR == 0) walk<VECTOR>($moved$, row, lane);
    else walk<1>($moved$, row, lane);
}
