// presage: entry row_losses
// presage: tune LANES = 32, 16, 8
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1, 8
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or (UNROLL == 8 and VECTOR == 1)
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row, so that no two warps ever wait for each other. UNROLL groups of VECTOR elements
// are read before the first of them is added. TAIL takes care of what is left over after the last whole step of the
// LANES.

$prelude$

template <int N> __device__ State lane_total(const Arguments &a, const Row &row, int r, int lane) {
    const int groups = a.cols / N;
    State s = identity();
    int v = lane;
    for (; v + (UNROLL - 1) * LANES < groups; v += UNROLL * LANES) {
        Group<N> group[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) group[u] = fetch<N>(a, r, v + u * LANES);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) s = included<N>(s, group[u], row, (v + u * LANES) * N);
    }
    for (; v < (TAIL ? groups : groups / LANES * LANES); v += LANES)
        s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    return s;
}

extern "C" __global__ void __launch_bounds__(THREADS) row_losses($parameters$) {
    const Arguments a = {$names$};
    const int place = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    // Threads past the last row go along with it: the shuffles need every lane of a warp.
    const int r = min(place, rows - 1);
    const Row row = row_of(&a, r);
    const State s = warp_total<LANES>(
        cols % VECTOR == 0 ? lane_total<VECTOR>(a, row, r, lane) : lane_total<1>(a, row, r, lane));
    if (lane == 0 && place < rows) $loss$[r] = finished(&a, s, row, r);
}
