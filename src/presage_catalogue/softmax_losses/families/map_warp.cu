// presage: entry map_rows
// presage: tune LANES = 32, 16, 8
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune VECTOR = 4, 1
// presage: tune KEEP = 4, 0, 8, 16
// presage: tune TAIL = 1, 0
// presage: where VECTOR == 4 or KEEP <= 4
// presage: where TAIL == 1 or (KEEP == 0 and THREADS <= 128)
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row, so that no two warps ever wait for each other. KEEP groups of VECTOR elements
// stay in each thread's registers between finding the row's total and writing the result; what lies beyond is read
// again. TAIL takes care of what is left over after the last whole step of the LANES.

$prelude$

template <int N> __device__ void map_row(const Arguments &a, int r, bool write, int lane) {
    const Row row = row_of(&a, r);
    const int groups = a.cols / N, all = MASKED ? (row.extent + N - 1) / N : groups;
    const int seen = TAIL ? all : all / LANES * LANES;
    Group<N> kept[KEEP > 0 ? KEEP : 1];
    State s = identity();
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * LANES < seen) kept[k] = fetch<N>(a, r, lane + k * LANES);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * LANES < seen) s = included<N>(s, kept[k], row, (lane + k * LANES) * N);
    for (int v = lane + KEEP * LANES; v < seen; v += LANES) s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    s = settled(warp_total<LANES>(s));
    if (!write) return;

    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * LANES < groups) to[lane + k * LANES] = mapped<N>(kept[k], s, row, (lane + k * LANES) * N);
    for (int v = lane + KEEP * LANES; v < groups; v += LANES) {
        Group<N> group = {};
        if (v < seen) group = fetch<N>(a, r, v);
        to[v] = mapped<N>(group, s, row, v * N);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) map_rows($parameters$) {
    const Arguments a = {$names$};
    const int r = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    // Threads past the last row go along with it: the shuffles need every lane of a warp.
    if (cols % VECTOR == 0) map_row<VECTOR>(a, min(r, rows - 1), r < rows, lane);
    else map_row<1>(a, min(r, rows - 1), r < rows, lane);
}
