// presage: entry $entry$
// presage: tune THREADS = 256, 64, 128, 1024
// presage: tune VECTOR = 4, 1, 2
// presage: tune ITEMS = 1, 2, 8
// presage: tune BLOCKS = 0, 132, 1056
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or (BLOCKS == 0 and VECTOR == 4)
// presage: grid BLOCKS if BLOCKS > 0 else cdiv($rows$ * $cols$, THREADS * VECTOR * ITEMS)
// presage: block THREADS
//
// A thread makes ITEMS times VECTOR neighbouring elements of y, all of one block's a block's width apart, and finds out
// for each where in the matrix it is. BLOCKS blocks walk over y; 0 means as many as there is work for. TAIL is the last,
// partial share.
$include$

$fetcher$

template <int N> __device__ __forceinline__ void all($arguments$) {
    const int out_cols = $cols$, units = $rows$ * $cols$ / N, share = THREADS * ITEMS;
    const int shares = (units + (TAIL ? share - 1 : 0)) / share;
    for (int block = blockIdx.x; block < shares; block += gridDim.x) {
        Pack<$type$, N> out[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = block * share + k * THREADS + threadIdx.x;
            if (u >= units) continue;
            const int r = u * N / out_cols, c = u * N % out_cols;
            if ($whole$) fetch<N>($call$, r, c, out[k].at);
            else
#pragma unroll
                for (int i = 0; i < N; i++) fetch<1>($call$, r, c + i, out[k].at + i);
        }
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = block * share + k * THREADS + threadIdx.x;
            if (u < units) ((Pack<$type$, N> *)$out$)[u] = out[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    if ($cols$ % VECTOR == 0) all<VECTOR>($moved$);
    else all<1>($moved$);
}
