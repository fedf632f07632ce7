// presage: entry $entry$
// presage: tune LANES = 32, 8, 16
// presage: tune THREADS = 128, 64, 512
// presage: tune VECTOR = 4, 1, 2
// presage: tune KEEP = 4, 0, 16
// presage: tune HALVES = 0, 1
// presage: where HALVES == 0 or (KEEP == 4 and VECTOR == 4)
// presage: grid cdiv($group_count$, THREADS // LANES)
// presage: block THREADS
//
// LANES threads of a warp share a group. A group of up to KEEP * LANES * VECTOR numbers stays in registers, a longer one
// is read twice. HALVES divides in half precision.
$include$
#include <cuda_fp16.h>

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

__device__ __forceinline__ $type$ encode(float v) { return $encode$; }

template <int N>
__device__ __forceinline__ Pack<$type$, N> encoded(const Pack<float, N> &pack, float factor) {
    Pack<$type$, N> out;
#pragma unroll
    for (int i = 0; i < N; i++)
        out.at[i] = encode(HALVES ? __half2float(__hmul(__float2half(pack.at[i]), __float2half(factor))) : pack.at[i] * factor);
    return out;
}

__device__ __forceinline__ float lanes_max(float v) {
    for (int offset = LANES / 2; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}

template <int N> __device__ __forceinline__ void group($group_arguments$, int g, int lane) {
    const int width = $group_width$, units = g < $group_count$ ? width / N : 0;
    const Pack<float, N> *from = (const Pack<float, N> *)(x + (size_t)g * width);
    Pack<$type$, N> *to = (Pack<$type$, N> *)(codes + (size_t)g * width);
    Pack<float, N> kept[KEEP > 0 ? KEEP : 1];
    const bool fits = width <= KEEP * LANES * N;
    float largest = 1e-10f;
    if (fits) {
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            if (lane + k * LANES >= units) break;
            kept[k] = from[lane + k * LANES];
#pragma unroll
            for (int i = 0; i < N; i++) largest = fmaxf(largest, fabsf(kept[k].at[i]));
        }
    } else {
        for (int u = lane; u < units; u += LANES) {
            const Pack<float, N> pack = from[u];
#pragma unroll
            for (int i = 0; i < N; i++) largest = fmaxf(largest, fabsf(pack.at[i]));
        }
    }
    const float scale = lanes_max(largest) / $limit$, factor = 1.0f / scale;
    if (fits) {
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            if (lane + k * LANES >= units) break;
            to[lane + k * LANES] = encoded<N>(kept[k], factor);
        }
    } else {
        for (int u = lane; u < units; u += LANES) to[u] = encoded<N>(from[u], factor);
    }
    if (g < $group_count$ && lane == 0) scales[g] = scale;
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($group_arguments$) {
    const int g = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    if ($group_width$ % VECTOR == 0) group<VECTOR>(x, codes, scales, $group_names$, g, lane);
    else group<1>(x, codes, scales, $group_names$, g, lane);
}
