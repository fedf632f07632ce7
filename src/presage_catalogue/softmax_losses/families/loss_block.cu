// presage: entry row_losses
// presage: tune THREADS = 256, 64, 512, 1024
// presage: tune VECTOR = 4, 1, 2
// presage: tune UNROLL = 4, 1, 2
// presage: tune TAIL = 1, 0
$tunables$
// presage: where TAIL == 1 or (UNROLL == 4 and VECTOR < 4)
// presage: grid rows
// presage: block THREADS
//
// One block per row. UNROLL groups of VECTOR elements are read before the first of them is added to the thread's total.
// TAIL takes care of what is left over after the last whole step of the block.
// STEP, where it is one, rescales a running sum once a group instead of once an element.

$prelude$

template <int N> __device__ State thread_total(const Arguments &a, const Row &row, int r) {
    const int groups = a.cols / N;
    State s = identity();
    int v = threadIdx.x;
    for (; v - (int)threadIdx.x + UNROLL * THREADS <= groups; v += UNROLL * THREADS) {
        Group<N> group[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) group[u] = fetch<N>(a, r, v + u * THREADS);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) s = included<N>(s, group[u], row, (v + u * THREADS) * N);
    }
    if (TAIL || groups < UNROLL * THREADS)
        for (; v < groups; v += THREADS) s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    return s;
}

extern "C" __global__ void __launch_bounds__(THREADS) row_losses($parameters$) {
    const Arguments a = {$names$};
    const int r = blockIdx.x;
    const Row row = row_of(&a, r);
    const State s = block_total<THREADS>(
        cols % VECTOR == 0 ? thread_total<VECTOR>(a, row, r) : thread_total<1>(a, row, r));
    if (threadIdx.x == 0) $loss$[r] = finished(&a, s, row, r);
}
