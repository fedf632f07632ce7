// presage: entry sort_rows
// presage: tune THREADS = 256, 64, 128, 512, 1024
// presage: tune BASE = 8, 1, 4, 16
// presage: grid rows
// presage: block THREADS
// presage: shared 2 * $item_bytes$ * cols
//
// Merge sort of a row by one block in shared memory. Each thread sorts runs of BASE neighbours by insertion; then runs
// are merged in pairs, where every element finds its place by a binary search in the other run of its pair.

$items$

extern __shared__ Item items[];

extern "C" __global__ void __launch_bounds__(THREADS) sort_rows($parameters$) {
    const float *row = x + (size_t)blockIdx.x * cols;
    Item *from = items, *to = items + cols;
    for (int c = threadIdx.x; c < cols; c += THREADS) from[c] = item_of(row, c);
    __syncthreads();
    if (BASE > 1) {
        for (int start = threadIdx.x * BASE; start < cols; start += THREADS * BASE)
            for (int i = start + 1; i < min(start + BASE, cols); i++) {
                const Item item = from[i];
                int j = i;
                for (; j > start && above(from[j - 1], item); j--) from[j] = from[j - 1];
                from[j] = item;
            }
        __syncthreads();
    }
    for (int run = BASE; run < cols; run *= 2) {
        for (int c = threadIdx.x; c < cols; c += THREADS) {
            const int pair = c / (2 * run) * 2 * run;
            const bool second = c - pair >= run;
            const Item item = from[c];
            // Of equal elements, those of the first run come first.
            int low = second ? pair : min(pair + run, cols), high = second ? pair + run : min(pair + 2 * run, cols);
            const int start = low;
            while (low < high) {
                const int middle = (low + high) / 2;
                if (second ? !above(from[middle], item) : above(item, from[middle])) low = middle + 1;
                else high = middle;
            }
            to[c - (second ? run : 0) + low - start] = item;
        }
        __syncthreads();
        Item *const other = from;
        from = to, to = other;
    }
    for (int c = threadIdx.x; c < cols; c += THREADS) y[(size_t)blockIdx.x * cols + c] = result(from[c]);
}
