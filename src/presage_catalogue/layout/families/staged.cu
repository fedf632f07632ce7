// presage: entry $entry$
// presage: tune DOWN = 32, 8, 256
// presage: tune ACROSS = 32, 64, 256
// presage: tune THREADS = 256, 128, 512
// presage: tune WALK = 1, 0, 2
// presage: tune PAD = 1, 0
// presage: tune VECTOR = 1, 4
// presage: where DOWN * ACROSS >= 2 * THREADS
// presage: where PAD == 1 or WALK == 1
// presage: grid cdiv($rows$, DOWN) * cdiv($cols$, ACROSS)
// presage: block THREADS
// presage: shared 4 * DOWN * (ACROSS + PAD)
//
// A block gathers DOWN rows of ACROSS columns of y in shared memory and then writes them row by row. Neighbouring
// threads gather down a column of y (WALK 1), along a row (0), or along every second element of a row (2), whichever
// lies side by side in the input. PAD shifts each row of the tile by one bank.
$include$

$fetcher$

template <int N> __device__ void write($type$ *out, const $type$ *tile, int row, int col, int out_rows, int out_cols) {
    for (int i = threadIdx.x; i < DOWN * ACROSS / N; i += THREADS) {
        const int r = i / (ACROSS / N), c = i % (ACROSS / N) * N;
        if (row + r >= out_rows || col + c >= out_cols) continue;
        Pack<$type$, N> pack;
#pragma unroll
        for (int k = 0; k < N; k++) pack.at[k] = tile[r * (ACROSS + PAD) + c + k];
        *(Pack<$type$, N> *)(out + (size_t)(row + r) * out_cols + col + c) = pack;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ $type$ tile[];
    const int out_rows = $rows$, out_cols = $cols$, across = (out_cols + ACROSS - 1) / ACROSS;
    const int row = blockIdx.x / across * DOWN, col = blockIdx.x % across * ACROSS;
    for (int i = threadIdx.x; i < DOWN * ACROSS; i += THREADS) {
        const int r = WALK == 1 ? i % DOWN : i / ACROSS, along = i % ACROSS;
        const int c = WALK == 1 ? i / DOWN : WALK == 0 ? along : along % (ACROSS / 2) * 2 + along / (ACROSS / 2);
        if (row + r < out_rows && col + c < out_cols) fetch<1>($call$, row + r, col + c, tile + r * (ACROSS + PAD) + c);
    }
    __syncthreads();
    if (out_cols % VECTOR == 0) write<VECTOR>($out$, tile, row, col, out_rows, out_cols);
    else write<1>($out$, tile, row, col, out_rows, out_cols);
}
