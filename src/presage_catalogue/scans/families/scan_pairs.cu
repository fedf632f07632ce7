// presage: entry totals
// presage: tune PARTS = 8, 2, 4, 32, 128
// presage: tune THREADS = 256, 128, 512
// presage: tune ITEMS = 4, 1, 8
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry scan
// presage: grid rows * PARTS
// presage: block THREADS
// presage: scratch partial = $state_bytes$ * rows * PARTS
//
// PARTS blocks share a row. The first launch finds every part's total; in the second, every block joins the totals of
// the parts before its own and then scans its part, THREADS * ITEMS elements at a time.

$prelude$

#define TILE (THREADS * ITEMS)

// Parts are whole tiles, so that groups of items stay aligned.
__device__ int share_of(int cols) { return (cols + TILE * PARTS - 1) / (TILE * PARTS) * TILE; }

extern "C" __global__ void __launch_bounds__(THREADS) totals($parameters$, State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int r = blockIdx.x / PARTS, first = blockIdx.x % PARTS * share_of(cols);
    State carried = identity();
    for (int start = first; start < min(cols, first + share_of(cols)); start += TILE) {
        State item[ITEMS], total;
        load<ITEMS>(a, r, start + threadIdx.x * ITEMS, item);
        scan_items<ITEMS>(item);
        before_thread<THREADS>(item[ITEMS - 1], total);
        carried = joined(carried, total);
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = carried;
}

extern "C" __global__ void __launch_bounds__(THREADS) scan($parameters$, const State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int r = blockIdx.x / PARTS, part = blockIdx.x % PARTS, first = part * share_of(cols);
    State carried = identity();
    for (int p = 0; p < part; p++) carried = joined(carried, partial[r * PARTS + p]);
    for (int start = first; start < min(cols, first + share_of(cols)); start += TILE) {
        State item[ITEMS], total;
        load<ITEMS>(a, r, start + threadIdx.x * ITEMS, item);
        scan_items<ITEMS>(item);
        const State before = before_thread<THREADS>(item[ITEMS - 1], total);
        store<ITEMS>(a, r, start + threadIdx.x * ITEMS, joined(carried, before), item);
        carried = joined(carried, total);
    }
}
