// presage: entry clear
// presage: tune THREADS = 256, 64, 1024
// presage: tune RUN = 1, 4, 16
// presage: tune WALK = 0, 1
// presage: grid cdiv(lists * dim, 256)
// presage: block 256
// presage: entry $entry$
// presage: grid cdiv(cdiv($list_entries$, RUN) * dim, THREADS)
// presage: block THREADS
//
// A thread takes RUN neighbouring places of the lists, in one column, and adds what belongs to one list to the result
// with one atomic addition. WALK 0 lays neighbouring threads along the columns, 1 along the places.

__device__ int find(const int *offsets, int lists, int j) {
    int low = 0, high = lists;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (offsets[middle] <= j) low = middle;
        else high = middle;
    }
    return low;
}

extern "C" __global__ void clear($arguments$) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < lists * dim) y[i] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int all = $list_entries$, runs = (all + RUN - 1) / RUN, i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= runs * dim) return;
    const int c = WALK ? i / runs : i % dim, first = (WALK ? i % runs : i / dim) * RUN;
    float sum = 0.0f;
    int list = -1;
    for (int j = first; j < min(all, first + RUN); j++) {
        const int owner = $list_owner$;
        if (owner != list) {
            if (list >= 0) atomicAdd(y + (size_t)list * dim + c, sum);
            list = owner;
            sum = 0.0f;
        }
        sum += x[(size_t)($list_row$) * dim + c];
    }
    atomicAdd(y + (size_t)list * dim + c, sum);
}
