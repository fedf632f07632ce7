// presage: entry $entry$
// presage: tune THREADS = 128, 32, 256, 1024
// presage: tune VECTOR = 4, 1, 2
// presage: tune UNROLL = 4, 1, 8
// presage: tune ACC = float, double, half
// presage: where ACC != "half" or (UNROLL == 4 and VECTOR == 4)
// presage: where ACC != "double" or UNROLL == 1
// presage: grid cdiv(lists * dim, THREADS * VECTOR)
// presage: block THREADS
//
// A thread adds up VECTOR neighbouring columns of one list in variables of type ACC, UNROLL rows in flight at once.
#include <cuda_fp16.h>

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ __forceinline__ void add_up($arguments$, int r, int c) {
    const int begin = $list_begin$, end = $list_end$;
    ACC sum[N];
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] = (ACC)0.0f;
    int start = begin;
    for (; start + UNROLL <= end; start += UNROLL) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int j = start + u;
            pack[u] = *(const Pack<N> *)(x + (size_t)($list_row$) * dim + c);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) sum[i] += (ACC)pack[u].at[i];
    }
    for (int j = start; j < end; j++) {
        const Pack<N> pack = *(const Pack<N> *)(x + (size_t)($list_row$) * dim + c);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] += (ACC)pack.at[i];
    }
    Pack<N> out;
#pragma unroll
    for (int i = 0; i < N; i++) out.at[i] = (float)sum[i];
    *(Pack<N> *)(y + (size_t)r * dim + c) = out;
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int lanes = dim % VECTOR == 0 ? dim / VECTOR : dim;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < lists * lanes; i += gridDim.x * THREADS) {
        if (dim % VECTOR == 0) add_up<VECTOR>($list_call$, i / lanes, i % lanes * VECTOR);
        else add_up<1>($list_call$, i / lanes, i % lanes);
    }
}
