// presage: entry $entry$
// presage: tune THREADS = 128, 64, 512
// presage: tune TOKENS = 1, 4
// presage: tune VECTOR = 2, 1, 4
// presage: tune TRIG = float, half
// presage: tune STAGED = 1, 0
// presage: where TRIG == "float" or (STAGED == 1 and VECTOR == 2)
// presage: grid cdiv(batch * seq, TOKENS)
// presage: block THREADS
// presage: shared 8 * half_dim
//
// A block turns all heads of TOKENS tokens, one after the other. STAGED keeps the token's cosines and sines in shared
// memory, as numbers of type TRIG.
#include <cuda_fp16.h>

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

template <int N> __device__ __forceinline__ void load(const $type$ *row, int half_dim, int k, float *a, float *b) {
    $load$
}

template <int N> __device__ __forceinline__ void store($type$ *row, int half_dim, int k, const float *a, const float *b) {
    $store$
}

template <int N> __device__ __forceinline__ void token($pair_arguments$, int t, const TRIG *staged) {
    const int lanes = half_dim / N, s = t % seq;
    for (int u = threadIdx.x; u < heads * lanes; u += THREADS) {
        const size_t start = ((size_t)t * heads + u / lanes) * 2 * half_dim;
        const int k = u % lanes * N;
        float a[N], b[N], turned_a[N], turned_b[N];
        load<N>(x + start, half_dim, k, a, b);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float cosine = STAGED ? (float)staged[k + i] : cosines[s * half_dim + k + i];
            const float sine = STAGED ? (float)staged[half_dim + k + i] : sines[s * half_dim + k + i];
            turned_a[i] = a[i] * cosine - b[i] * sine;
            turned_b[i] = b[i] * cosine + a[i] * sine;
        }
        store<N>(y + start, half_dim, k, turned_a, turned_b);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($pair_arguments$) {
    extern __shared__ TRIG staged[];
    for (int t = blockIdx.x * TOKENS; t < min(batch * seq, (int)(blockIdx.x + 1) * TOKENS); t++) {
        if (STAGED) {
            __syncthreads();
            for (int k = threadIdx.x; k < half_dim; k += THREADS) {
                staged[k] = (TRIG)cosines[t % seq * half_dim + k];
                staged[half_dim + k] = (TRIG)sines[t % seq * half_dim + k];
            }
            __syncthreads();
        }
        if (half_dim % VECTOR == 0) token<VECTOR>(x, cosines, sines, y, batch, seq, heads, half_dim, t, staged);
        else token<1>(x, cosines, sines, y, batch, seq, heads, half_dim, t, staged);
    }
}
