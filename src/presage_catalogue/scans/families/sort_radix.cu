// presage: entry sort_rows
// presage: tune THREADS = 128, 64, 256, 512
// presage: tune BITS = 4, 1, 2, 8
// presage: tune SIGNED = 1, 0
// presage: where SIGNED == 1 or BITS == 2
// presage: grid rows
// presage: block THREADS
// presage: shared 2 * $item_bytes$ * cols + 4 * THREADS * (256 if BITS == 8 else 16 if BITS == 4 else 4 if BITS == 2 else 2)
//
// Radix sort of a row by one block in shared memory, BITS at a time from the lowest. Each thread counts the digits of
// its stretch of neighbours, the counts are scanned digit by digit, and every element goes to its place. SIGNED turns
// the keys' bits around so that negative ones come first.

$items$

#define DIGITS (1 << BITS)

extern __shared__ unsigned memory[];

__device__ unsigned ordered(float key) {
    const unsigned bits = __float_as_uint(key == 0.0f ? 0.0f : key);
    return SIGNED ? bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u) : bits;
}

// Exclusive, over DIGITS * THREADS counts in shared memory.
__device__ void scan_counts(unsigned *counts) {
    __shared__ unsigned of_warp[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned own = 0;
    for (int i = 0; i < DIGITS; i++) own += counts[threadIdx.x * DIGITS + i];
    unsigned running = own;
    for (int by = 1; by < 32; by *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, running, by);
        if (lane >= by) running += other;
    }
    if (lane == 31) of_warp[warp] = running;
    __syncthreads();
    unsigned before = running - own;
    for (int w = 0; w < warp; w++) before += of_warp[w];
    for (int i = 0; i < DIGITS; i++) {
        const unsigned count = counts[threadIdx.x * DIGITS + i];
        counts[threadIdx.x * DIGITS + i] = before;
        before += count;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_rows($parameters$) {
    const float *row = x + (size_t)blockIdx.x * cols;
    unsigned *counts = memory;
    Item *from = (Item *)(memory + DIGITS * THREADS), *to = from + cols;
    const int share = (cols + THREADS - 1) / THREADS;
    const int first = min(cols, (int)threadIdx.x * share), end = min(cols, first + share);
    for (int c = threadIdx.x; c < cols; c += THREADS) from[c] = item_of(row, c);
    for (int shift = 0; shift < 32; shift += BITS) {
        for (int digit = 0; digit < DIGITS; digit++) counts[digit * THREADS + threadIdx.x] = 0;
        __syncthreads();
        for (int i = first; i < end; i++)
            counts[(ordered(from[i].key) >> shift) % DIGITS * THREADS + threadIdx.x]++;
        __syncthreads();
        scan_counts(counts);
        for (int i = first; i < end; i++)
            to[counts[(ordered(from[i].key) >> shift) % DIGITS * THREADS + threadIdx.x]++] = from[i];
        __syncthreads();
        Item *const other = from;
        from = to, to = other;
    }
    for (int c = threadIdx.x; c < cols; c += THREADS) y[(size_t)blockIdx.x * cols + c] = result(from[c]);
}
