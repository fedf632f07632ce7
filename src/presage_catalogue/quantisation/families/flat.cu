// presage: entry $entry$
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1, 8, 16
// presage: tune ITEMS = 1, 4
// presage: tune BLOCKS = 0, 132, 1056
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or (BLOCKS == 0 and VECTOR == 4)
// presage: grid BLOCKS if BLOCKS > 0 else cdiv(rows * $width$, THREADS * VECTOR * ITEMS)
// presage: block THREADS
//
// A thread recodes ITEMS times VECTOR neighbouring elements, all of one block's a block's width apart. BLOCKS blocks walk
// over all; 0 means as many as there is work for. TAIL is the last, partial share.
$include$

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T at[N]; };

__device__ __forceinline__ void recode($arguments$, $from$ v, int r, int c, $to$ *out) {
    $recode$
}

template <int N> __device__ __forceinline__ void all($arguments$) {
    const int wide = $width$, units = rows * wide / N, share = THREADS * ITEMS;
    const int shares = (units + (TAIL ? share - 1 : 0)) / share;
    for (int block = blockIdx.x; block < shares; block += gridDim.x)
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = block * share + k * THREADS + threadIdx.x;
            if (u >= units) continue;
            const int r = u * N / wide, c = u * N % wide;
            const Pack<$from$, N> in = ((const Pack<$from$, N> *)$source$)[u];
            Pack<$to$, N * $outs$> out;
#pragma unroll
            for (int i = 0; i < N; i++) recode($moved$, in.at[i], r, c + i, out.at + i * $outs$);
            ((Pack<$to$, N * $outs$> *)$out$)[u] = out;
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    if ($width$ % VECTOR == 0) all<VECTOR>($moved$);
    else all<1>($moved$);
}
