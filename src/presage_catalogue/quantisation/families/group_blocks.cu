// presage: entry $entry$
// presage: tune THREADS = 128, 32, 256, 1024
// presage: tune VECTOR = 4, 1
// presage: tune STAGED = 0, 1
// presage: tune REDUCE = 0, 1, 2
// presage: tune LEAST = 1, 0
// presage: tune DIVIDE = 1, 0
// presage: where LEAST == 1 or (REDUCE == 0 and VECTOR == 4)
// presage: where DIVIDE == 1 or REDUCE < 2
// presage: grid $group_count$
// presage: block THREADS
// presage: shared 4 * $group_width$ if STAGED > 0 else 0
//
// A block takes one group: finds its largest number and goes through it again, or through its copy in shared memory with
// STAGED. The threads' numbers meet by shuffles (REDUCE 0), by halving in shared memory (1) or by atomic operations (2).
// LEAST holds the scale above 1e-10. DIVIDE 0 multiplies by the scale's reciprocal.
$include$

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

__device__ __forceinline__ $type$ encode(float v) { return $encode$; }

__device__ float block_max(float v) {
    __shared__ float part[THREADS];
    const int t = threadIdx.x;
    if (REDUCE == 2) {
        if (t == 0) part[0] = 0.0f;
        __syncthreads();
        // Floats above zero are in the order of their bits.
        atomicMax((int *)part, __float_as_int(v));
        __syncthreads();
        return part[0];
    }
    if (REDUCE == 1) {
        part[t] = v;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (t < half) part[t] = fmaxf(part[t], part[t + half]);
            __syncthreads();
        }
        return part[0];
    }
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    if (t % 32 == 0) part[t / 32] = v;
    __syncthreads();
    v = t % 32 < THREADS / 32 ? part[t % 32] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}

template <int N> __device__ __forceinline__ void group($group_arguments$, float *near) {
    const int width = $group_width$, units = width / N;
    const Pack<float, N> *from = (const Pack<float, N> *)(x + (size_t)blockIdx.x * width);
    Pack<$type$, N> *to = (Pack<$type$, N> *)(codes + (size_t)blockIdx.x * width);
    float largest = 0.0f;
    for (int u = threadIdx.x; u < units; u += THREADS) {
        const Pack<float, N> pack = from[u];
        if (STAGED) ((Pack<float, N> *)near)[u] = pack;
#pragma unroll
        for (int i = 0; i < N; i++) largest = fmaxf(largest, fabsf(pack.at[i]));
    }
    largest = block_max(largest);
    const float scale = (LEAST ? fmaxf(largest, 1e-10f) : largest) / $limit$, factor = 1.0f / scale;
    for (int u = threadIdx.x; u < units; u += THREADS) {
        const Pack<float, N> pack = STAGED ? ((const Pack<float, N> *)near)[u] : from[u];
        Pack<$type$, N> out;
#pragma unroll
        for (int i = 0; i < N; i++) out.at[i] = encode(DIVIDE ? pack.at[i] / scale : pack.at[i] * factor);
        to[u] = out;
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($group_arguments$) {
    extern __shared__ __align__(16) float near[];
    if ($group_width$ % VECTOR == 0) group<VECTOR>(x, codes, scales, $group_names$, near);
    else group<1>(x, codes, scales, $group_names$, near);
}
