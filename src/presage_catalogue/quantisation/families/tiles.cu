// presage: entry $entry$
// presage: tune ACROSS = 32, 8, 128, 512
// presage: tune DOWN = 4, 1, 8
// presage: tune VECTOR = 4, 1
// presage: tune ROWS = 1, 2, 8
// presage: tune ORDER = 0, 1
// presage: grid cdiv(rows, DOWN * ROWS) * cdiv($width$, ACROSS * VECTOR)
// presage: block ACROSS, DOWN
//
// A block recodes DOWN * ROWS rows of ACROSS * VECTOR columns; a thread keeps to its columns. ORDER 0 takes the tiles
// along the rows, 1 down the columns.
$include$

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T at[N]; };

__device__ __forceinline__ void recode($arguments$, $from$ v, int r, int c, $to$ *out) {
    $recode$
}

template <int N> __device__ __forceinline__ void stretch($arguments$, int r, int c) {
    const int wide = $width$;
    const Pack<$from$, N> in = *(const Pack<$from$, N> *)($source$ + (size_t)r * wide + c);
    Pack<$to$, N * $outs$> out;
#pragma unroll
    for (int i = 0; i < N; i++) recode($moved$, in.at[i], r, c + i, out.at + i * $outs$);
    *(Pack<$to$, N * $outs$> *)($out$ + ((size_t)r * wide + c) * $outs$) = out;
}

extern "C" __global__ void __launch_bounds__(ACROSS *DOWN) $entry$($arguments$) {
    const int wide = $width$, down = (rows + DOWN * ROWS - 1) / (DOWN * ROWS);
    const int across = (wide + ACROSS * VECTOR - 1) / (ACROSS * VECTOR);
    const int first = (ORDER ? blockIdx.x % down : blockIdx.x / across) * DOWN * ROWS + threadIdx.y;
    const int col = (ORDER ? blockIdx.x / down : blockIdx.x % across) * ACROSS * VECTOR;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int r = first + k * DOWN;
        if (r >= rows) return;
        if (wide % VECTOR == 0) {
            if (col + (int)threadIdx.x * VECTOR < wide) stretch<VECTOR>($moved$, r, col + threadIdx.x * VECTOR);
        } else {
            for (int c = col + threadIdx.x; c < min(wide, col + ACROSS * VECTOR); c += ACROSS) stretch<1>($moved$, r, c);
        }
    }
}
