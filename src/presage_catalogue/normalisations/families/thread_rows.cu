// presage: entry $entry$
// presage: tune THREADS = 256, 32, 64
// presage: tune VECTOR = $vectors$
// presage: tune UNROLL = 4, 1
// presage: grid cdiv($rows$, THREADS)
// presage: block THREADS
//
// One thread per row, which it reads again for the result.

$norm$

$packs$

template <int N> __device__ void normalise(const Arrays &a, int row) {
    const int vectors = a.cols / N;
    State first = empty(), last;
#pragma unroll UNROLL
    for (int v = 0; v < vectors; v++) include_all(&first, gather<N>(a, row, v), 0, nullptr, a.cols);
    last = first;
    if (PASSES == 2) {
        last = empty();
#pragma unroll UNROLL
        for (int v = 0; v < vectors; v++) include_all(&last, gather<N>(a, row, v), 1, &first, a.cols);
    }
    const Row r = finish(&first, &last, a.cols);
#pragma unroll UNROLL
    for (int v = 0; v < vectors; v++) scatter<N>(a, row, v, gather<N>(a, row, v), &r);
}

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($arguments$) {
    const Arrays a = $arrays$;
    const int row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= a.rows) return;
    if (a.cols % VECTOR == 0) normalise<VECTOR>(a, row);
    else normalise<1>(a, row);
}
