// presage: entry $entry$
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune VECTOR = $vectors$
// presage: tune KEEP = 4, 0, 1, 8, 16
// presage: tune STASH = 0, 1
// presage: tune BLOCKS = 0, 264
// presage: where KEEP == 0 or STASH == 0
// presage: where BLOCKS == 0 or (VECTOR == 4 and STASH == 0)
// presage: where KEEP < 8 or THREADS <= 512
// presage: grid BLOCKS if BLOCKS else $rows$
// presage: block THREADS
// presage: shared 4 * $kept$ * ($cols$) if STASH else 0
//
// One block per row, or BLOCKS blocks that walk over the rows. KEEP vectors per thread stay in registers until the
// result, or all of the row in shared memory (STASH 1); with neither, or beyond them, it is read again from cache.

$norm$

$packs$

// All threads of the block get its state.
$block_total$

template <int N> __device__ void normalise(const Arrays &a, int row) {
    extern __shared__ __align__(16) float stash[];
    const int vectors = a.cols / N, rest = threadIdx.x + KEEP * THREADS;
    Kept<N> kept[KEEP > 0 ? KEEP : 1], *stashed = (Kept<N> *)stash;
    State first = empty(), last;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) include_all(&first, kept[k] = gather<N>(a, row, v), 0, nullptr, a.cols);
    }
    for (int v = rest; v < vectors; v += THREADS) {
        const Kept<N> one = gather<N>(a, row, v);
        include_all(&first, one, 0, nullptr, a.cols);
        if (STASH) stashed[v] = one;
    }
    last = first = block_total(first);
    if (PASSES == 2) {
        last = empty();
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (threadIdx.x + k * THREADS < vectors) include_all(&last, kept[k], 1, &first, a.cols);
        for (int v = rest; v < vectors; v += THREADS)
            include_all(&last, STASH ? stashed[v] : gather<N>(a, row, v), 1, &first, a.cols);
        last = block_total(last);
    }
    const Row r = finish(&first, &last, a.cols);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (threadIdx.x + k * THREADS < vectors) scatter<N>(a, row, threadIdx.x + k * THREADS, kept[k], &r);
    for (int v = rest; v < vectors; v += THREADS) scatter<N>(a, row, v, STASH ? stashed[v] : gather<N>(a, row, v), &r);
}

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($arguments$) {
    const Arrays a = $arrays$;
    for (int row = blockIdx.x; row < a.rows; row += gridDim.x) {
        if (a.cols % VECTOR == 0) normalise<VECTOR>(a, row);
        else normalise<1>(a, row);
    }
}
