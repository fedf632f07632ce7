// presage: entry sort_rows
// presage: tune NETWORK = 0, 1, 2
// presage: tune THREADS = 256, 64, 128, 512, 1024
// presage: tune GAP = 0, 1
// presage: grid rows
// presage: block THREADS
// presage: shared $item_bytes$ * (cols + (cols // 32 if GAP else 0))
//
// One block sorts a row in shared memory by a network of comparisons. NETWORK 0 is Batcher's bitonic sort, with the
// first step of every merge turned around so that all comparisons point the same way; 1 is his odd-even merge sort; 2
// compares neighbours only. GAP leaves one place free after every 32.

$items$

extern __shared__ Item items[];

__device__ Item &item_at(int i) { return items[GAP ? i + i / 32 : i]; }

__device__ void compare(int low, int high) {
    const Item a = item_at(low), b = item_at(high);
    if (above(a, b)) item_at(low) = b, item_at(high) = a;
}

__device__ void bitonic(int count) {
    int half = 1;
    while (2 * half < count) half *= 2; // half of the next power of two
    for (int size = 2; size <= 2 * half; size *= 2) {
        for (int p = threadIdx.x; p < half; p += THREADS) {
            const int start = p / (size / 2) * size, inner = p % (size / 2);
            if (start + size - 1 - inner < count) compare(start + inner, start + size - 1 - inner);
        }
        __syncthreads();
        for (int stride = size / 4; stride > 0; stride /= 2) {
            for (int p = threadIdx.x; p < half; p += THREADS) {
                const int low = p / stride * 2 * stride + p % stride;
                if (low + stride < count) compare(low, low + stride);
            }
            __syncthreads();
        }
    }
}

__device__ void odd_even_merge(int count) {
    for (int run = 1; run < count; run *= 2)
        for (int stride = run; stride > 0; stride /= 2) {
            const int first = stride % run;
            for (int i = threadIdx.x; i + stride < count; i += THREADS)
                if (i >= first && (i - first) / stride % 2 == 0 && i / (2 * run) == (i + stride) / (2 * run))
                    compare(i, i + stride);
            __syncthreads();
        }
}

__device__ void neighbours(int count) {
    for (int step = 0; step < count; step++) {
        for (int i = step % 2 + 2 * threadIdx.x; i + 1 < count; i += 2 * THREADS) compare(i, i + 1);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_rows($parameters$) {
    const float *row = x + (size_t)blockIdx.x * cols;
    for (int c = threadIdx.x; c < cols; c += THREADS) item_at(c) = item_of(row, c);
    __syncthreads();
    if (NETWORK == 0) bitonic(cols);
    if (NETWORK == 1) odd_even_merge(cols);
    if (NETWORK == 2) neighbours(cols);
    for (int c = threadIdx.x; c < cols; c += THREADS) y[(size_t)blockIdx.x * cols + c] = result(item_at(c));
}
