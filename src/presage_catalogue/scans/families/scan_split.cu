// presage: entry totals
// presage: tune THREADS = 256, 128, 512
// presage: tune ITEMS = 8, 2, 4, 16
// presage: tune WIDTH = 1024, 32, 256
// presage: tune LOOP = 1, 0
// presage: where LOOP == 1 or WIDTH == 32
// presage: grid rows * cdiv(cols, THREADS * ITEMS)
// presage: block THREADS
// presage: entry offsets
// presage: grid rows
// presage: block WIDTH
// presage: entry scan
// presage: grid rows * cdiv(cols, THREADS * ITEMS)
// presage: block THREADS
// presage: scratch partial = $state_bytes$ * rows * cdiv(cols, THREADS * ITEMS)
//
// Rows are cut into chunks of THREADS * ITEMS. The first launch finds every chunk's total; in the second, a block of
// WIDTH threads per row scans those, as many times as LOOP lets it; the third scans every chunk from its offset.

$prelude$

#define CHUNK (THREADS * ITEMS)

extern "C" __global__ void __launch_bounds__(THREADS) totals($parameters$, State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int chunks = (cols + CHUNK - 1) / CHUNK, r = blockIdx.x / chunks;
    State item[ITEMS], total;
    load<ITEMS>(a, r, blockIdx.x % chunks * CHUNK + threadIdx.x * ITEMS, item);
    scan_items<ITEMS>(item);
    before_thread<THREADS>(item[ITEMS - 1], total);
    if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(WIDTH) offsets($parameters$, State *__restrict__ partial) {
    const int chunks = (cols + CHUNK - 1) / CHUNK;
    State *row = partial + (size_t)blockIdx.x * chunks, carried = identity();
    for (int first = 0; first < (LOOP ? chunks : min(chunks, WIDTH)); first += WIDTH) {
        const int i = first + threadIdx.x;
        State total;
        const State before = before_thread<WIDTH>(i < chunks ? row[i] : identity(), total);
        if (i < chunks) row[i] = joined(carried, before);
        carried = joined(carried, total);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) scan($parameters$, const State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int chunks = (cols + CHUNK - 1) / CHUNK, r = blockIdx.x / chunks;
    const int mine = blockIdx.x % chunks * CHUNK + threadIdx.x * ITEMS;
    State item[ITEMS], total;
    load<ITEMS>(a, r, mine, item);
    scan_items<ITEMS>(item);
    const State before = before_thread<THREADS>(item[ITEMS - 1], total);
    store<ITEMS>(a, r, mine, joined(partial[blockIdx.x], before), item);
}
