// presage: entry table_of_terms
// presage: tune THREADS = 256, 128, 1024
// presage: tune VECTOR = 4, 1
// presage: tune ITEMS = 1, 4
// presage: tune FORM = 1, 0, 2
// presage: tune STORED = float, half
// presage: where STORED == "float" or VECTOR == 1
// presage: grid cdiv($table_rows$ * $cols$, THREADS)
// presage: block THREADS
// presage: entry $entry$
// presage: grid cdiv($rows$ * $cols$, THREADS * VECTOR * ITEMS)
// presage: block THREADS
// presage: scratch table = 4 * $table_rows$ * $cols$
//
// A first launch writes what belongs to every place of one sequence to memory, as numbers of type STORED, and a second
// adds it to all sequences, VECTOR elements ITEMS times a thread.
#include <cuda_fp16.h>

#define ANGLE float

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

__device__ __forceinline__ float term(int r, int c, $sizes$) {
    $term$
}

extern "C" __global__ void __launch_bounds__(THREADS) table_of_terms($arguments$, STORED *table) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < $table_rows$ * $cols$) table[i] = (STORED)term(i / $cols$, i % $cols$, $names$);
}

template <int N> __device__ __forceinline__ void all($arguments$, const STORED *table) {
    const int width = $cols$, units = $rows$ * $cols$ / N;
    for (int start = blockIdx.x * THREADS * ITEMS; start < units; start += gridDim.x * THREADS * ITEMS)
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = start + k * THREADS + threadIdx.x;
            if (u >= units) continue;
            const int r = u * N / width, c = u * N % width;
            Pack<float, N> pack = ((const Pack<float, N> *)x)[u];
            const Pack<STORED, N> terms = *(const Pack<STORED, N> *)(table + (size_t)(r % $table_rows$) * width + c);
#pragma unroll
            for (int i = 0; i < N; i++) pack.at[i] += (float)terms.at[i];
            ((Pack<float, N> *)y)[u] = pack;
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$, STORED *table) {
    if ($cols$ % VECTOR == 0) all<VECTOR>(x, y, $names$, table);
    else all<1>(x, y, $names$, table);
}
