// presage: entry $entry$
// presage: grid cdiv($rows$ * $cols$, 256)
// presage: block 256
$include$

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

template <int N> __device__ void fetch($inputs$, int r, int c, $type$ *out) {
    $fetch$
}

extern "C" __global__ void $entry$($arguments$) {
    const int i = blockIdx.x * 256 + threadIdx.x, out_cols = $cols$;
    if (i < $rows$ * out_cols) fetch<1>($call$, i / out_cols, i % out_cols, $out$ + i);
}
