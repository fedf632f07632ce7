// presage: entry map_rows
// presage: tune THREADS = 64, 32, 128, 256
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: grid cdiv(rows, THREADS)
// presage: block THREADS
//
// One thread per row, which it reads twice: for the total and for the result.

$prelude$

template <int N> __device__ void map_row(const Arguments &a, int r) {
    const Row row = row_of(&a, r);
    const int groups = a.cols / N, seen = MASKED ? (row.extent + N - 1) / N : groups;
    State s = identity();
#pragma unroll UNROLL
    for (int v = 0; v < seen; v++) s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    s = settled(s);
    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
#pragma unroll UNROLL
    for (int v = 0; v < groups; v++) {
        Group<N> group = {};
        if (v < seen) group = fetch<N>(a, r, v);
        to[v] = mapped<N>(group, s, row, v * N);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) map_rows($parameters$) {
    const Arguments a = {$names$};
    const int r = blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows) return;
    if (cols % VECTOR == 0) map_row<VECTOR>(a, r);
    else map_row<1>(a, r);
}
