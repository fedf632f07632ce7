// presage: entry $entry$
$tune_form$
// presage: tune THREADS = 256, 128, 1024
// presage: tune VECTOR = $wide$, 1
// presage: tune BLOCKS = 0, 264
// presage: grid BLOCKS if BLOCKS else cdiv(n, THREADS * VECTOR)
// presage: block THREADS
//
// FORM 0 is the plain formula with the library's functions, 1 has the hardware's functions and quotients, 2 is in double
// precision, 3 rounds every step to half, and those from 4 on are other ways to write it. BLOCKS 0 launches a thread per
// vector; otherwise that many blocks walk over the vectors.
#include <cuda_fp16.h>
$element$
$form_helpers$

template <int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
typedef Pack<VECTOR> Vector;

__device__ __forceinline__ void apply(const float *in, float *out) {
    $forms$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const T *const from[] = {$in_pointers$};
    T *const to[] = {$out_pointers$};
    for (int at = (blockIdx.x * THREADS + threadIdx.x) * VECTOR; at < n; at += gridDim.x * THREADS * VECTOR) {
        Vector kept[$inputs$], made[$outputs$];
        const bool whole = at + VECTOR <= n;
#pragma unroll
        for (int k = 0; k < $inputs$; k++) {
            if (whole) kept[k] = *(const Vector *)(from[k] + at);
            else {
#pragma unroll
                for (int i = 0; i < VECTOR; i++)
                    if (at + i < n) kept[k].at[i] = from[k][at + i];
            }
        }
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            $apply_to_vector$
        }
#pragma unroll
        for (int k = 0; k < $outputs$; k++) {
            if (whole) *(Vector *)(to[k] + at) = made[k];
            else {
#pragma unroll
                for (int i = 0; i < VECTOR; i++)
                    if (at + i < n) to[k][at + i] = made[k].at[i];
            }
        }
    }
}
