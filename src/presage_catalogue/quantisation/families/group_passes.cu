// presage: entry clear
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1
// presage: tune RUN = 4, 1, 16
// presage: tune WARP = 0, 1
// presage: grid cdiv($group_count$, 256)
// presage: block 256
// presage: entry find
// presage: grid cdiv($group_count$ * $group_width$, THREADS * RUN)
// presage: block THREADS
// presage: entry $entry$
// presage: grid cdiv($group_count$ * $group_width$, THREADS * VECTOR)
// presage: block THREADS
// presage: scratch largest = 4 * $group_count$
//
// Three launches over all numbers as one long row: clear; find every group's largest with atomic operations, where a
// thread goes through RUN neighbours first, and with WARP the lanes that are all in one group settle it among themselves;
// encode, VECTOR numbers a thread.
$include$

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

__device__ __forceinline__ $type$ encode(float v) { return $encode$; }

extern "C" __global__ void clear($group_arguments$, int *largest) {
    const int g = blockIdx.x * 256 + threadIdx.x;
    if (g < $group_count$) largest[g] = __float_as_int(1e-10f);
}

extern "C" __global__ void __launch_bounds__(THREADS) find($group_arguments$, int *largest) {
    const int width = $group_width$, total = $group_count$ * width;
    const int first = (blockIdx.x * THREADS + threadIdx.x) * RUN;
    float most = 0.0f;
    int group = min(first, total - 1) / width;
    for (int i = first; i < min(total, first + RUN); i++) {
        if (i / width != group) {
            atomicMax(largest + group, __float_as_int(most));
            group = i / width;
            most = 0.0f;
        }
        most = fmaxf(most, fabsf(x[i]));
    }
    if (WARP) {
        const int leader = __shfl_sync(0xffffffffu, group, 0);
        if (__all_sync(0xffffffffu, group == leader)) {
            for (int offset = 16; offset > 0; offset /= 2)
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
            if (threadIdx.x % 32 == 0) atomicMax(largest + group, __float_as_int(most));
            return;
        }
    }
    atomicMax(largest + group, __float_as_int(most));
}

template <int N> __device__ __forceinline__ void all($group_arguments$, const int *largest) {
    const int width = $group_width$, units = $group_count$ * width / N;
    for (int u = blockIdx.x * THREADS + threadIdx.x; u < units; u += gridDim.x * THREADS) {
        const int g = u * N / width;
        const float scale = __int_as_float(largest[g]) / $limit$;
        const Pack<float, N> pack = ((const Pack<float, N> *)x)[u];
        Pack<$type$, N> out;
#pragma unroll
        for (int i = 0; i < N; i++) out.at[i] = encode(pack.at[i] / scale);
        ((Pack<$type$, N> *)codes)[u] = out;
        if (u * N % width == 0) scales[g] = scale;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($group_arguments$, int *largest) {
    if ($group_width$ % VECTOR == 0) all<VECTOR>(x, codes, scales, $group_names$, largest);
    else all<1>(x, codes, scales, $group_names$, largest);
}
