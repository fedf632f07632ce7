// presage: entry $entry$
// presage: tune THREADS = 256, 64, 512
// presage: tune VECTOR = 4, 1
// presage: tune ITEMS = 2, 1, 8
// presage: tune SPREAD = 1, 0
// presage: tune BLOCKS = 0, 264
// presage: where ITEMS > 1 or SPREAD == 1
// presage: grid BLOCKS if BLOCKS > 0 else cdiv($rows$ * $cols$, THREADS * VECTOR * ITEMS)
// presage: block THREADS
//
// Every thread takes elements of x, ITEMS times VECTOR of them, and puts each where it belongs in y: x is read in whole
// lines, and the cache gathers what is written. SPREAD and BLOCKS share the work out.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ __forceinline__ void push($inputs$, float *out, int r, int c, float v) {
    $push$
    out[to] = v;
}

template <int N> __device__ __forceinline__ void all($arguments$) {
    const int units = $rows$ * $cols$ / N, wide = $source_cols$;
    for (int start = blockIdx.x * THREADS * ITEMS; start < units; start += gridDim.x * THREADS * ITEMS)
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = start + (SPREAD ? k * THREADS + (int)threadIdx.x : (int)threadIdx.x * ITEMS + k);
            if (u >= units) continue;
            const Pack<N> pack = ((const Pack<N> *)$from$)[u];
            const int r = u * N / wide, c = u * N % wide;
#pragma unroll
            for (int i = 0; i < N; i++) push($call$, $out$, r, c + i, pack.at[i]);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    if ($source_cols$ % VECTOR == 0) all<VECTOR>($moved$);
    else all<1>($moved$);
}
