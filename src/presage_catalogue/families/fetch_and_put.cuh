template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

template <int N> __device__ __forceinline__ void fetch($inputs$, int r, int c, $type$ *out) {
    $fetch$
}

__device__ void put(Pack<float, 4> *to, const Pack<float, 4> &v) {
    if (HINT) __stcs((float4 *)to, *(const float4 *)&v);
    else *to = v;
}

template <class P> __device__ void put(P *to, const P &v) { *to = v; }
