// presage: entry $entry$
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1, 2
// presage: tune BLOCKS = 0, 264
// presage: tune FORM = 0, 1, 2, 3
// presage: tune ANGLE = float, double, half
// presage: where ANGLE == "float" or (FORM == 1 and BLOCKS == 0)
// presage: where FORM != 3 or VECTOR == 4
// presage: grid BLOCKS if BLOCKS > 0 else cdiv($rows$ * $cols$, THREADS * VECTOR)
// presage: block THREADS
//
// A thread adds to VECTOR neighbouring elements what belongs to their places, found anew for each. FORM 0, 1, 2 and 3
// are ways to find the power in it, in single precision, by the hardware's functions, and in double precision; ANGLE is
// the type of its product with a distance.
#include <cuda_fp16.h>

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float sin(half v) { return sinf((float)v); }
__device__ float cos(half v) { return cosf((float)v); }

__device__ __forceinline__ float term(int r, int c, $sizes$) {
    $term$
}

template <int N> __device__ __forceinline__ void all($arguments$) {
    const int width = $cols$, units = $rows$ * $cols$ / N;
    for (int u = blockIdx.x * THREADS + threadIdx.x; u < units; u += gridDim.x * THREADS) {
        const int r = u * N / width, c = u * N % width;
        Pack<N> pack = ((const Pack<N> *)x)[u];
#pragma unroll
        for (int i = 0; i < N; i++) pack.at[i] += term(r, c + i, $names$);
        ((Pack<N> *)y)[u] = pack;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    if ($cols$ % VECTOR == 0) all<VECTOR>(x, y, $names$);
    else all<1>(x, y, $names$);
}
