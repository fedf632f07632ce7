// presage: entry $entry$
// presage: tune LANES = 32, 128, 256
// presage: tune THREADS = 256, 512
// presage: tune UNROLL = 1, 2, 4, 8
// presage: tune HINT = 0, 1
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads walk along one row, four neighbours a step where the width allows it, UNROLL steps in flight. HINT reads
// with the hint that the input is not needed again.
$include$

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T at[N]; };

__device__ __forceinline__ void recode($arguments$, $from$ v, int r, int c, $to$ *out) {
    $recode$
}

template <class P> __device__ __forceinline__ P get(const P *from) {
    P pack;
    if (HINT && sizeof(P) == 16) *(float4 *)&pack = __ldcs((const float4 *)from);
    else if (HINT && sizeof(P) == 4) *(unsigned *)&pack = __ldcs((const unsigned *)from);
    else pack = *from;
    return pack;
}

template <int N> __device__ __forceinline__ void walk($arguments$, int r, int lane) {
    const int wide = $width$, units = wide / N;
    const Pack<$from$, N> *from = (const Pack<$from$, N> *)($source$ + (size_t)r * wide);
    Pack<$to$, N * $outs$> *to = (Pack<$to$, N * $outs$> *)($out$ + (size_t)r * wide * $outs$);
    for (int start = lane; start < units; start += UNROLL * LANES) {
        Pack<$from$, N> in[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            if (start + k * LANES < units) in[k] = get(from + start + k * LANES);
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int u = start + k * LANES;
            if (u >= units) break;
            Pack<$to$, N * $outs$> out;
#pragma unroll
            for (int i = 0; i < N; i++) recode($moved$, in[k].at[i], r, u * N + i, out.at + i * $outs$);
            to[u] = out;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int r = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (r >= rows) return;
    if ($width$ % 4 == 0) walk<4>($moved$, r, lane);
    else walk<1>($moved$, r, lane);
}
