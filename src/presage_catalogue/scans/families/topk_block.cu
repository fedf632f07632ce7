// presage: entry largest
// presage: tune THREADS = 128, 32, 64, 256, 512
// presage: tune VECTOR = 4, 1, 2
// presage: tune MERGE = 0, 1
// presage: tune FILTER = 1, 0
// presage: grid rows
// presage: block THREADS
//
// One block per row. Every thread keeps the K largest elements it has seen in registers, in order. MERGE 0 then takes
// the largest head of all threads' lists K times; 1 merges the lists in pairs in shared memory. FILTER looks at the
// list only if an element exceeds its last.

#define K $topk$
template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ void take(float (&list)[K], float value) {
    if (FILTER && value <= list[K - 1]) return;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const float higher = fmaxf(list[k], value);
        value = fminf(list[k], value);
        list[k] = higher;
    }
}

template <int N> __device__ void read_row(const float *row, int cols, float (&list)[K]) {
    const Pack<N> *from = (const Pack<N> *)row;
    for (int v = threadIdx.x; v < cols / N; v += THREADS) {
        const Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) take(list, pack.at[i]);
    }
}

__device__ void by_heads(float (&list)[K], float *out) {
    __shared__ float of_warp[THREADS / 32];
    __shared__ int owner;
    for (int k = 0; k < K; k++) {
        float top = list[0];
        for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = top;
        if (threadIdx.x == 0) owner = THREADS;
        __syncthreads();
        for (int w = 0; w < THREADS / 32; w++) top = fmaxf(top, of_warp[w]);
        // Of several threads with the same head, the first gives it away.
        if (list[0] == top) atomicMin(&owner, (int)threadIdx.x);
        __syncthreads();
        if (threadIdx.x == owner) {
            out[k] = top;
#pragma unroll
            for (int i = 1; i < K; i++) list[i - 1] = list[i];
            list[K - 1] = -INFINITY;
        }
        __syncthreads();
    }
}

__device__ void by_pairs(float (&list)[K], float *out) {
    __shared__ float lists[THREADS][K + 1];
#pragma unroll
    for (int k = 0; k < K; k++) lists[threadIdx.x][k] = list[k];
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            float merged[K];
            int i = 0, j = 0;
#pragma unroll
            for (int k = 0; k < K; k++) {
                const float a = lists[threadIdx.x][i], b = lists[threadIdx.x + half][j];
                merged[k] = fmaxf(a, b);
                if (a >= b) i++;
                else j++;
            }
#pragma unroll
            for (int k = 0; k < K; k++) lists[threadIdx.x][k] = merged[k];
        }
    }
    __syncthreads();
    if (threadIdx.x < K) out[threadIdx.x] = lists[0][threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(THREADS) largest($parameters$) {
    const float *row = x + (size_t)blockIdx.x * cols;
    float list[K];
#pragma unroll
    for (int k = 0; k < K; k++) list[k] = -INFINITY;
    if (cols % VECTOR == 0) read_row<VECTOR>(row, cols, list);
    else read_row<1>(row, cols, list);
    if (MERGE == 0) by_heads(list, y + (size_t)blockIdx.x * K);
    else by_pairs(list, y + (size_t)blockIdx.x * K);
}
