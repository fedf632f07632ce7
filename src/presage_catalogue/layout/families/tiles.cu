// presage: entry $entry$
// presage: tune ACROSS = 64, 8, 32, 256
// presage: tune DOWN = 4, 1, 8
// presage: tune VECTOR = 4, 1
// presage: tune ROWS = 1, 4
// presage: tune ORDER = 0, 1
// presage: tune HINT = 0, 1
// presage: where HINT == 0 or VECTOR == 4
// presage: grid cdiv($rows$, DOWN * ROWS) * cdiv($cols$, ACROSS * VECTOR)
// presage: block ACROSS, DOWN
//
// A block makes DOWN * ROWS rows of ACROSS * VECTOR columns of y, a thread ROWS of them. ORDER 0 takes the tiles along
// y's rows, 1 down its columns. HINT stores with the hint that nobody will read the result soon.
$include$

$fetch_and_put$

template <int N> __device__ __forceinline__ void move($arguments$, int r, int c) {
    const int out_cols = $cols$;
    Pack<$type$, N> out;
    if ($whole$) fetch<N>($call$, r, c, out.at);
    else
#pragma unroll
        for (int k = 0; k < N; k++) fetch<1>($call$, r, c + k, out.at + k);
    put((Pack<$type$, N> *)($out$ + (size_t)r * out_cols + c), out);
}

extern "C" __global__ void __launch_bounds__(ACROSS *DOWN) $entry$($arguments$) {
    const int out_rows = $rows$, out_cols = $cols$;
    const int down = (out_rows + DOWN * ROWS - 1) / (DOWN * ROWS), across = (out_cols + ACROSS * VECTOR - 1) / (ACROSS * VECTOR);
    const int tile_r = ORDER ? blockIdx.x % down : blockIdx.x / across;
    const int tile_c = ORDER ? blockIdx.x / down : blockIdx.x % across;
    const int first = tile_r * DOWN * ROWS + threadIdx.y;
    const int c = tile_c * ACROSS * VECTOR + (out_cols % VECTOR == 0 ? threadIdx.x * VECTOR : threadIdx.x);
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int r = first + k * DOWN;
        if (r >= out_rows) return;
        if (out_cols % VECTOR == 0) {
            if (c < out_cols) move<VECTOR>($moved$, r, c);
        } else {
            for (int i = 0; i < VECTOR; i++)
                if (c + i * ACROSS < out_cols) move<1>($moved$, r, c + i * ACROSS);
        }
    }
}
