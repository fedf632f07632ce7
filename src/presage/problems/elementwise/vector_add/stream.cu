// presage: problem vector_add
// presage: entry vector_add
// presage: tune THREADS = 256, 128, 1024
// presage: tune VECTOR = 4, 2, 1
// presage: tune UNROLL = 1, 2, 4
// presage: tune BLOCKS = 0, 1056
// presage: tune STREAMING = 0, 1
// presage: where VECTOR * UNROLL <= 8
// presage: grid BLOCKS if BLOCKS else cdiv(n, THREADS * VECTOR * UNROLL)
// presage: block THREADS
//
// Each thread has UNROLL loads of VECTOR floats in flight at once. BLOCKS 0 launches a block per tile; otherwise that
// many blocks walk over the tiles. STREAMING marks data as not to be kept in cache.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <class T> __device__ T load(const T *from) {
    T value;
    float *to = value.at;
    const float *source = from->at;
    if (!STREAMING) return *from;
    if (VECTOR == 4) *(float4 *)to = __ldcs((const float4 *)source);
    else if (VECTOR == 2) *(float2 *)to = __ldcs((const float2 *)source);
    else *to = __ldcs(source);
    return value;
}

template <class T> __device__ void store(T *to, T value) {
    if (!STREAMING) *to = value;
    else if (VECTOR == 4) __stcs((float4 *)to, *(float4 *)value.at);
    else if (VECTOR == 2) __stcs((float2 *)to, *(float2 *)value.at);
    else __stcs((float *)to, value.at[0]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
vector_add(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ z, int n) {
    typedef Pack<VECTOR> Vector;
    const Vector *from_x = (const Vector *)x, *from_y = (const Vector *)y;
    const int vectors = n / VECTOR;
    for (int tile = blockIdx.x; tile * THREADS * UNROLL < vectors; tile += gridDim.x) {
        const int first = tile * THREADS * UNROLL + threadIdx.x;
        Vector a[UNROLL], b[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * THREADS < vectors) {
                a[u] = load(from_x + first + u * THREADS);
                b[u] = load(from_y + first + u * THREADS);
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * THREADS < vectors) {
#pragma unroll
                for (int i = 0; i < VECTOR; i++) a[u].at[i] += b[u].at[i];
                store((Vector *)z + first + u * THREADS, a[u]);
            }
        }
    }
    // What is left after the last whole vector.
    const int last = vectors * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && last < n) z[last] = x[last] + y[last];
}
