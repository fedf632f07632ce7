// presage: entry scan_rows
// presage: tune THREADS = 256, 64, 128, 512, 1024
// presage: tune ITEMS = 4, 1, 8, 16
// presage: tune METHOD = 0, 1, 2
// presage: tune AHEAD = 0, 1
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or METHOD == 2
// presage: where METHOD == 0 or AHEAD == 0
// presage: where THREADS * ITEMS <= 8192
// presage: grid rows
// presage: block THREADS
//
// One block per row walks along it, THREADS * ITEMS elements at a time: each thread scans ITEMS neighbours, and the
// block scans the threads' totals. METHOD 0 does so by shuffles within warps and then across them; 1 in shared memory,
// where each step takes in the total twice as far away; 2 up and down a tree in shared memory. AHEAD reads the next
// elements before the block meets to scan these. TAIL takes care of what is left over after the last whole step of the
// block.

$prelude$

#define TILE (THREADS * ITEMS)

__device__ State by_distance(State s, State &total) {
    __shared__ State totals[2][THREADS];
    const int t = threadIdx.x;
    int from = 0;
    __syncthreads(); // the last tile's readers are done
    totals[0][t] = s;
    for (int distance = 1; distance < THREADS; distance *= 2) {
        __syncthreads();
        totals[!from][t] = t >= distance ? joined(totals[from][t - distance], totals[from][t]) : totals[from][t];
        from = !from;
    }
    __syncthreads();
    total = totals[from][THREADS - 1];
    return t > 0 ? totals[from][t - 1] : identity();
}

__device__ State by_tree(State s, State &total) {
    __shared__ State totals[THREADS];
    const int t = threadIdx.x;
    __syncthreads(); // the last tile's readers are done
    totals[t] = s;
    for (int distance = 1; distance < THREADS; distance *= 2) {
        __syncthreads();
        const int at = (t + 1) * 2 * distance - 1;
        if (at < THREADS) totals[at] = joined(totals[at - distance], totals[at]);
    }
    __syncthreads();
    total = totals[THREADS - 1];
    __syncthreads();
    if (t == 0) totals[THREADS - 1] = identity();
    for (int distance = THREADS / 2; distance > 0; distance /= 2) {
        __syncthreads();
        const int at = (t + 1) * 2 * distance - 1;
        if (at < THREADS) {
            const State left = totals[at - distance];
            totals[at - distance] = totals[at];
            totals[at] = joined(totals[at], left);
        }
    }
    __syncthreads();
    return totals[t];
}

__device__ State before_this(State s, State &total) {
    if (METHOD == 1) return by_distance(s, total);
    if (METHOD == 2) return by_tree(s, total);
    return before_thread<THREADS>(s, total);
}

extern "C" __global__ void __launch_bounds__(THREADS) scan_rows($parameters$) {
    const Arguments a = {$names$};
    const int r = blockIdx.x, mine = threadIdx.x * ITEMS;
    State carried = identity(), item[ITEMS], next[ITEMS];
    if (AHEAD) load<ITEMS>(a, r, mine, next);
    for (int start = 0; start < (TAIL ? cols : cols / TILE * TILE); start += TILE) {
        if (AHEAD) {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) item[i] = next[i];
            load<ITEMS>(a, r, start + TILE + mine, next);
        } else {
            load<ITEMS>(a, r, start + mine, item);
        }
        scan_items<ITEMS>(item);
        State total;
        const State before = before_this(item[ITEMS - 1], total);
        store<ITEMS>(a, r, start + mine, joined(carried, before), item);
        carried = joined(carried, total);
    }
}
