// presage: entry largest
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune STAGE = 0, 4096, 32768, 65536
// presage: tune VECTOR = 4, 1
// presage: grid rows
// presage: block THREADS
// presage: shared 4 * min(STAGE, cols)
//
// One block per row goes over it K times, each time for the largest element that is left: smaller than the one before,
// or equal to it and further on. The first STAGE elements are kept in shared memory.

#define K $topk$

struct Found {
    float value;
    int index;
};

__device__ bool ahead(Found a, Found b) { return a.value > b.value || (a.value == b.value && a.index < b.index); }

__device__ Found block_best(Found best) {
    __shared__ Found of_warp[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        const Found other = {__shfl_xor_sync(0xffffffffu, best.value, offset),
                             __shfl_xor_sync(0xffffffffu, best.index, offset)};
        if (ahead(other, best)) best = other;
    }
    __syncthreads(); // the last pass's readers are done
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
    __syncthreads();
    best = of_warp[0];
    for (int w = 1; w < THREADS / 32; w++)
        if (ahead(of_warp[w], best)) best = of_warp[w];
    return best;
}

__device__ void look(Found &best, Found last, float value, int c) {
    const Found here = {value, c};
    if (ahead(last, here) && ahead(here, best)) best = here;
}

extern __shared__ float staged[];

extern "C" __global__ void __launch_bounds__(THREADS) largest($parameters$) {
    const float *row = x + (size_t)blockIdx.x * cols;
    const int count = min(STAGE, cols);
    for (int c = threadIdx.x; c < count; c += THREADS) staged[c] = row[c];
    __syncthreads();
    Found last = {INFINITY, -1};
    for (int k = 0; k < K; k++) {
        Found best = {-INFINITY, 0x7fffffff};
        for (int c = threadIdx.x; c < count; c += THREADS) look(best, last, staged[c], c);
        if (VECTOR == 4 && cols % 4 == 0) {
            for (int c = count + 4 * threadIdx.x; c < cols; c += 4 * THREADS) {
                const float4 four = *(const float4 *)(row + c);
                look(best, last, four.x, c);
                look(best, last, four.y, c + 1);
                look(best, last, four.z, c + 2);
                look(best, last, four.w, c + 3);
            }
        } else {
            for (int c = count + threadIdx.x; c < cols; c += THREADS) look(best, last, row[c], c);
        }
        last = block_best(best);
        if (threadIdx.x == 0) y[(size_t)blockIdx.x * K + k] = last.value;
    }
}
