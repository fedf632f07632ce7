// presage: entry $entry$
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1, 2
// presage: tune ITEMS = 1, 4
// presage: tune SPREAD = 1, 0
// presage: tune BLOCKS = 0, 132, 1056
// presage: tune TAIL = 1, 0
// presage: where ITEMS > 1 or SPREAD == 1
// presage: where TAIL == 1 or (BLOCKS == 0 and VECTOR == 4)
// presage: grid BLOCKS if BLOCKS > 0 else cdiv($rows$ * $cols$, THREADS * VECTOR * ITEMS)
// presage: block THREADS
//
// y is one long row of elements, of which a thread makes ITEMS times VECTOR: neighbours, or a block's width apart with
// SPREAD. BLOCKS blocks walk over all of it; 0 means as many as there is work for. TAIL is the last, partial share.
$include$

$fetcher$

template <int N> __device__ __forceinline__ void move($arguments$, int i) {
    const int out_cols = $cols$, r = i / out_cols, c = i % out_cols;
    Pack<$type$, N> out;
    if ($whole$) fetch<N>($call$, r, c, out.at);
    else
#pragma unroll
        for (int k = 0; k < N; k++) fetch<1>($call$, r, c + k, out.at + k);
    *(Pack<$type$, N> *)($out$ + i) = out;
}

template <int N, class F> __device__ __forceinline__ void each(int units, F work) {
    const int share = THREADS * ITEMS, shares = (units + (TAIL ? share - 1 : 0)) / share;
    for (int block = blockIdx.x; block < shares; block += gridDim.x)
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = block * share + (SPREAD ? k * THREADS + (int)threadIdx.x : (int)threadIdx.x * ITEMS + k);
            if (u < units) work(u * N);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int total = $rows$ * $cols$;
    if ($cols$ % VECTOR == 0)
        each<VECTOR>(total / VECTOR, [&](int i) { move<VECTOR>($moved$, i); });
    else
        each<1>(total, [&](int i) { move<1>($moved$, i); });
}
