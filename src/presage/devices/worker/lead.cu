// Runs before every timed call: holds the whole GPU until the call has been queued behind it, then evicts the L2 cache.
// With all shared memory taken, no block of another kernel fits beside it, and its blocks, one on each multiprocessor,
// end at the same instant: nothing can start early on another stream. What a copy has brought into the cache while the
// GPU was held is evicted with the rest.
__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

struct State {
    unsigned long long arrived, release, generation;
};

extern "C" __global__ void __launch_bounds__(1024, 1)
    lead(uint4 *memory, unsigned long long count, long long hold_ns, State *state, unsigned long long generation) {
    extern __shared__ unsigned char everything[];
    const unsigned long long start = now();
    if (threadIdx.x == 0)
        while (now() < start + hold_ns) {}
    __syncthreads();
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        memory[i] = make_uint4(start, i, start, i);
    __syncthreads();
    if (threadIdx.x == 0) {
        if (atomicAdd(&state->arrived, 1ull) + 1 == generation * gridDim.x) {
            state->release = now() + 2000;
            __threadfence();
            atomicExch(&state->generation, generation);
        }
        while (atomicAdd(&state->generation, 0ull) < generation) {}
        const unsigned long long release = *(volatile unsigned long long *)&state->release;
        while (now() < release) {}
    }
    __syncthreads();
    if (hold_ns < 0) everything[threadIdx.x] = 0;
}
