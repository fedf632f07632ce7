// presage: problem histogram
// presage: entry clear
// presage: tune THREADS = 256, 128, 512
// presage: tune COPIES = 1, 4, 32
// presage: tune VECTOR = 4, 1
// presage: tune ITEMS = 4, 1
// presage: grid cdiv(bins * COPIES, 256)
// presage: block 256
// presage: entry count
// presage: grid cdiv(n, THREADS * VECTOR * ITEMS)
// presage: block THREADS
// presage: entry widen
// presage: grid cdiv(bins, 256)
// presage: block 256
// presage: scratch narrow = 4 * bins * COPIES
//
// Counts in 32 bits in memory, which the L2 cache adds faster than 64, and widens them at the end. Blocks take turns
// between COPIES histograms, which costs space and helps where many elements are alike.

extern "C" __global__ void clear(const int *x, long long *counts, int n, int bins, unsigned *narrow) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < bins * COPIES) narrow[i] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
count(const int *__restrict__ x, long long *__restrict__ counts, int n, int bins, unsigned *__restrict__ narrow) {
    unsigned *mine = narrow + (size_t)(blockIdx.x % COPIES) * bins;
    const int vectors = n / VECTOR, first = blockIdx.x * THREADS * ITEMS + threadIdx.x;
    alignas(16) int bin[ITEMS][VECTOR];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int v = first + k * THREADS;
        if (v >= vectors) continue;
        if (VECTOR == 4) *(int4 *)bin[k] = ((const int4 *)x)[v];
        else bin[k][0] = x[v];
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
        for (int i = 0; i < VECTOR; i++)
            if (first + k * THREADS < vectors) atomicAdd(mine + bin[k][i], 1u);
    // What is left after the last whole vector.
    const int last = vectors * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && last < n) atomicAdd(mine + x[last], 1u);
}

extern "C" __global__ void widen(const int *__restrict__ x, long long *__restrict__ counts, int n, int bins,
                                 const unsigned *__restrict__ narrow) {
    const int bin = blockIdx.x * 256 + threadIdx.x;
    if (bin >= bins) return;
    long long sum = 0;
    for (int copy = 0; copy < COPIES; copy++) sum += narrow[(size_t)copy * bins + bin];
    counts[bin] = sum;
}
