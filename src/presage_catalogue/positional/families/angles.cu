// presage: entry $entry$
// presage: tune THREADS = 256, 64, 512
// presage: tune VECTOR = 2, 1, 4
// presage: tune SPLIT = 8, 1, 2, 32
// presage: tune OUTER = 0, 1
// presage: grid cdiv(seq * half_dim, THREADS * VECTOR) * SPLIT
// presage: block THREADS
//
// A thread keeps the cosines and sines of VECTOR angles in registers and turns everything that is turned by them: the
// heads of every sequence, in the order of heads (OUTER 0) or of sequences (1). SPLIT threads share that.
$include$

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

template <int N> __device__ __forceinline__ void load(const $type$ *row, int half_dim, int k, float *a, float *b) {
    $load$
}

template <int N> __device__ __forceinline__ void store($type$ *row, int half_dim, int k, const float *a, const float *b) {
    $store$
}

template <int N> __device__ __forceinline__ void angle($pair_arguments$, int u, int part) {
    const int lanes = half_dim / N, s = u / lanes, k = u % lanes * N;
    const Pack<float, N> cosine = *(const Pack<float, N> *)(cosines + s * half_dim + k);
    const Pack<float, N> sine = *(const Pack<float, N> *)(sines + s * half_dim + k);
    for (int i = part; i < batch * heads; i += SPLIT) {
        const int h = OUTER ? i / batch : i % heads, b = OUTER ? i % batch : i / heads;
        const size_t start = (((size_t)b * seq + s) * heads + h) * 2 * half_dim;
        float low[N], high[N], turned_low[N], turned_high[N];
        load<N>(x + start, half_dim, k, low, high);
#pragma unroll
        for (int j = 0; j < N; j++) {
            turned_low[j] = low[j] * cosine.at[j] - high[j] * sine.at[j];
            turned_high[j] = high[j] * cosine.at[j] + low[j] * sine.at[j];
        }
        store<N>(y + start, half_dim, k, turned_low, turned_high);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($pair_arguments$) {
    const int part = blockIdx.x % SPLIT, blocks = gridDim.x / SPLIT;
    const bool whole = half_dim % VECTOR == 0;
    const int units = seq * (whole ? half_dim / VECTOR : half_dim);
    for (int u = blockIdx.x / SPLIT * THREADS + threadIdx.x; u < units; u += blocks * THREADS) {
        if (whole) angle<VECTOR>(x, cosines, sines, y, batch, seq, heads, half_dim, u, part);
        else angle<1>(x, cosines, sines, y, batch, seq, heads, half_dim, u, part);
    }
}
