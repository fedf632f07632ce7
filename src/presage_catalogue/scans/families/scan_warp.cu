// presage: entry scan_rows
// presage: tune LANES = 32, 16, 8
// presage: tune THREADS = 128, 32, 256, 1024
// presage: tune ITEMS = 4, 1, 2, 8
// presage: tune AHEAD = 0, 1
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or (AHEAD == 0 and ITEMS == 4)
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row and walk along it, LANES * ITEMS elements at a time. AHEAD reads the next
// elements before these are scanned. TAIL takes care of what is left over after the last whole step of the LANES.

$prelude$

extern "C" __global__ void __launch_bounds__(THREADS) scan_rows($parameters$) {
    const Arguments a = {$names$};
    const int place = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    // Threads past the last row go along with it: the shuffles need every lane of a warp.
    const int r = min(place, rows - 1);
    State carried = identity(), item[ITEMS], next[ITEMS];
    if (AHEAD) load<ITEMS>(a, r, lane * ITEMS, next);
    const int end = TAIL ? cols : cols / (LANES * ITEMS) * LANES * ITEMS;
    for (int start = 0; start < end; start += LANES * ITEMS) {
        if (AHEAD) {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) item[i] = next[i];
            load<ITEMS>(a, r, start + (LANES + lane) * ITEMS, next);
        } else {
            load<ITEMS>(a, r, start + lane * ITEMS, item);
        }
        scan_items<ITEMS>(item);
        const State s = warp_scan<LANES>(item[ITEMS - 1]), before = shuffled_up(s, 1);
        if (place < rows)
            store<ITEMS>(a, r, start + lane * ITEMS, lane > 0 ? joined(carried, before) : carried, item);
        carried = joined(carried, shuffled(s, threadIdx.x % 32 / LANES * LANES + LANES - 1));
    }
}
