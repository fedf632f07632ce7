template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };

template <int N> __device__ __forceinline__ void fetch($inputs$, int r, int c, $type$ *out) {
    $fetch$
}
