// presage: entry map_rows
// presage: tune THREADS = 512, 128, 256, 1024
// presage: tune STASH = 8192, 2048, 24576, 49152, 65536
// presage: tune VECTOR = 4, 1
// presage: tune BLOCKS = 0, 132, 264
// presage: where VECTOR == 4 or BLOCKS == 0
// presage: grid min(rows, BLOCKS) if BLOCKS else rows
// presage: block THREADS
// presage: shared $element_bytes$ * $inputs$ * min(cols, STASH)
//
// One block per row, or BLOCKS blocks that take row after row. The row's first STASH elements stay in shared memory
// between finding its total and writing the result; what lies beyond is read again.

$prelude$

extern __shared__ __align__(16) unsigned char memory[];

template <int N> __device__ void map_row(const Arguments &a, int r) {
    Group<N> *stash = (Group<N> *)memory;
    const Row row = row_of(&a, r);
    const int groups = a.cols / N, seen = MASKED ? (row.extent + N - 1) / N : groups, held = min(seen, STASH / N);
    State s = identity();
#pragma unroll 4
    for (int v = threadIdx.x; v < held; v += THREADS) {
        const Group<N> group = fetch<N>(a, r, v);
        stash[v] = group;
        s = included<N>(s, group, row, v * N);
    }
    for (int v = held + threadIdx.x; v < seen; v += THREADS) s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    s = settled(block_total<THREADS>(s)); // its barriers do not matter to the stash: threads read what they wrote

    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
    for (int v = threadIdx.x; v < held; v += THREADS) to[v] = mapped<N>(stash[v], s, row, v * N);
    for (int v = held + threadIdx.x; v < groups; v += THREADS) {
        Group<N> group = {};
        if (v < seen) group = fetch<N>(a, r, v);
        to[v] = mapped<N>(group, s, row, v * N);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) map_rows($parameters$) {
    const Arguments a = {$names$};
    for (int r = blockIdx.x; r < rows; r += gridDim.x) {
        if (cols % VECTOR == 0) map_row<VECTOR>(a, r);
        else map_row<1>(a, r);
    }
}
