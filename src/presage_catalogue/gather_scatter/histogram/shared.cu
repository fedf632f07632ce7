// presage: problem histogram
// presage: entry clear
// presage: tune AGGREGATE = 0, 1, 2
// presage: tune THREADS = 512, 256, 1024
// presage: tune BLOCKS = 528, 132, 1056
// presage: tune COPIES = 1, 4
// presage: tune VECTOR = 4, 1
// presage: grid cdiv(bins, 256)
// presage: block 256
// presage: entry count
// presage: grid BLOCKS
// presage: block THREADS
// presage: shared 4 * bins * (COPIES if bins * COPIES <= 16384 else 1) if bins <= 16384 else 0
//
// Every block counts into shared memory and adds its counts to the result at the end; its warps share COPIES
// histograms, laid out so that a bin's copies are in different banks. Histograms that do not fit are counted in
// memory at once. AGGREGATE 1 adds up equal values of a warp before an atomic addition, 2 those that a thread sees in
// a row.

#define WORDS 16384

__device__ int copies_for(int bins) { return bins * COPIES <= WORDS ? COPIES : 1; }

extern "C" __global__ void clear(const int *x, unsigned long long *counts, int n, int bins) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < bins) counts[i] = 0;
}

struct Counter {
    unsigned long long *counts;
    unsigned *local; // this thread's copy in shared memory; null when the histogram does not fit
    int copies, run_bin, run;

    __device__ void add(int bin, int times) {
        if (local) atomicAdd(local + bin * copies, (unsigned)times);
        else atomicAdd(counts + bin, (unsigned long long)times);
    }

    // All lanes of the warp call it; those without an element have bin -1.
    __device__ void see(int bin) {
        if (AGGREGATE == 0 && bin >= 0) add(bin, 1);
        if (AGGREGATE == 1) {
            const unsigned same = __match_any_sync(0xffffffffu, bin);
            if (bin >= 0 && (int)(threadIdx.x % 32) == __ffs(same) - 1) add(bin, __popc(same));
        }
        if (AGGREGATE == 2 && bin >= 0) {
            if (bin != run_bin) flush(bin);
            run++;
        }
    }

    __device__ void flush(int bin) {
        if (run > 0) add(run_bin, run);
        run_bin = bin;
        run = 0;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
count(const int *__restrict__ x, unsigned long long *__restrict__ counts, int n, int bins) {
    extern __shared__ unsigned local[];
    const int copies = copies_for(bins), words = bins <= WORDS ? bins * copies : 0;
    for (int i = threadIdx.x; i < words; i += THREADS) local[i] = 0;
    __syncthreads();

    Counter counter = {counts, words ? local + threadIdx.x / 32 % copies : nullptr, copies, -1, 0};
    const int vectors = n / VECTOR, stride = gridDim.x * THREADS;
    // Every thread makes as many turns as the first, so that whole warps see elements together.
    for (int turn = blockIdx.x * THREADS; turn < vectors; turn += stride) {
        const int v = turn + threadIdx.x;
        alignas(16) int bin[VECTOR];
#pragma unroll
        for (int i = 0; i < VECTOR; i++) bin[i] = -1;
        if (v < vectors) {
            if (VECTOR == 4) *(int4 *)bin = ((const int4 *)x)[v];
            else bin[0] = x[v];
        }
#pragma unroll
        for (int i = 0; i < VECTOR; i++) counter.see(bin[i]);
    }
    counter.flush(-1);
    // What is left after the last whole vector.
    const int last = vectors * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && last < n) counter.add(x[last], 1);

    __syncthreads();
    for (int bin = threadIdx.x; bin < words / copies; bin += THREADS) {
        unsigned sum = 0;
        for (int copy = 0; copy < copies; copy++) sum += local[bin * copies + copy];
        if (sum) atomicAdd(counts + bin, (unsigned long long)sum);
    }
}
