// presage: entry $entry$
// presage: tune THREADS = 256, 64, 128, 1024
// presage: tune VECTOR = 2, 1, 4
// presage: tune ITEMS = 1, 4
// presage: tune BLOCKS = 0, 132, 1056
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or (BLOCKS == 0 and VECTOR == 2)
// presage: grid BLOCKS if BLOCKS > 0 else cdiv(batch * seq * heads * half_dim, THREADS * VECTOR * ITEMS)
// presage: block THREADS
//
// A thread turns ITEMS times VECTOR neighbouring pairs, and reads their cosines and sines anew each time. BLOCKS blocks
// walk over all pairs; 0 means as many as there is work for. TAIL is the last, partial share.
$include$

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

template <int N> __device__ __forceinline__ void load(const $type$ *row, int half_dim, int k, float *a, float *b) {
    $load$
}

template <int N> __device__ __forceinline__ void store($type$ *row, int half_dim, int k, const float *a, const float *b) {
    $store$
}

template <int N> __device__ __forceinline__ void all($pair_arguments$) {
    const int lanes = half_dim / N, units = batch * seq * heads * lanes, share = THREADS * ITEMS;
    const int shares = (units + (TAIL ? share - 1 : 0)) / share;
    for (int block = blockIdx.x; block < shares; block += gridDim.x)
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const int u = block * share + item * THREADS + threadIdx.x;
            if (u >= units) continue;
            const int r = u / lanes, k = u % lanes * N, s = r / heads % seq;
            float a[N], b[N], turned_a[N], turned_b[N];
            load<N>(x + (size_t)r * 2 * half_dim, half_dim, k, a, b);
            const Pack<float, N> cosine = *(const Pack<float, N> *)(cosines + s * half_dim + k);
            const Pack<float, N> sine = *(const Pack<float, N> *)(sines + s * half_dim + k);
#pragma unroll
            for (int i = 0; i < N; i++) {
                turned_a[i] = a[i] * cosine.at[i] - b[i] * sine.at[i];
                turned_b[i] = b[i] * cosine.at[i] + a[i] * sine.at[i];
            }
            store<N>(y + (size_t)r * 2 * half_dim, half_dim, k, turned_a, turned_b);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($pair_arguments$) {
    if (half_dim % VECTOR == 0) all<VECTOR>(x, cosines, sines, y, batch, seq, heads, half_dim);
    else all<1>(x, cosines, sines, y, batch, seq, heads, half_dim);
}
