// presage: entry $entry$
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = $widths$
// presage: tune UNROLL = 1, 2, 4
// presage: tune BLOCKS = 0, 132, 528
// presage: tune HINT = 0, 1, 2
// presage: tune TAIL = 1, 0
// presage: where HINT == 0 or (THREADS == 256 and BLOCKS == 0 and UNROLL < 4)
// presage: where TAIL == 1 or (THREADS == 256 and HINT == 0 and VECTOR > 1)
// presage: grid BLOCKS if BLOCKS else cdiv(n, THREADS * VECTOR * UNROLL)
// presage: block THREADS
//
// Each thread has UNROLL vectors of every input in flight at once, one block's width apart. BLOCKS 0 launches a block
// per tile; otherwise that many blocks walk over the tiles. HINT 1 marks data as not to be kept, 2 keeps it out of L1.
// TAIL is about the elements after the last whole vector.
$element$

template <int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
typedef Pack<VECTOR> Vector;
template <int BYTES> struct Word { typedef float4 type; };
template <> struct Word<8> { typedef float2 type; };
template <> struct Word<4> { typedef float type; };
template <> struct Word<2> { typedef short type; };
typedef Word<sizeof(Vector)>::type Access;

__device__ __forceinline__ Vector load(const T *from) {
    Vector value;
#pragma unroll
    for (int w = 0; w < sizeof(Vector) / sizeof(Access); w++) {
        const Access *at = (const Access *)from + w;
        ((Access *)&value)[w] = HINT == 1 ? __ldcs(at) : HINT == 2 ? __ldcg(at) : *at;
    }
    return value;
}

__device__ __forceinline__ void store(T *to, Vector value) {
#pragma unroll
    for (int w = 0; w < sizeof(Vector) / sizeof(Access); w++) {
        Access *at = (Access *)to + w;
        const Access word = ((Access *)&value)[w];
        if (HINT == 1) __stcs(at, word);
        else if (HINT == 2) __stcg(at, word);
        else *at = word;
    }
}

$entry_of_map$
    const int vectors = n / VECTOR;
    for (int tile = blockIdx.x; tile * THREADS * UNROLL < vectors; tile += gridDim.x) {
        const int first = tile * THREADS * UNROLL + threadIdx.x;
        Vector kept[UNROLL][$inputs$];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int at = first + u * THREADS;
            if (at >= vectors) continue;
#pragma unroll
            for (int k = 0; k < $inputs$; k++) kept[u][k] = load(from[k] + at * VECTOR);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int at = first + u * THREADS;
            if (at >= vectors) continue;
            Vector made[$outputs$];
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                float in[$inputs$], out[$outputs$];
#pragma unroll
                for (int k = 0; k < $inputs$; k++) in[k] = kept[u][k].at[i];
                apply(in, out);
#pragma unroll
                for (int k = 0; k < $outputs$; k++) made[k].at[i] = out[k];
            }
#pragma unroll
            for (int k = 0; k < $outputs$; k++) store(to[k] + at * VECTOR, made[k]);
        }
    }
#if TAIL
    const int last = vectors * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && last < n) {
        float in[$inputs$], out[$outputs$];
#pragma unroll
        for (int k = 0; k < $inputs$; k++) in[k] = from[k][last];
        apply(in, out);
#pragma unroll
        for (int k = 0; k < $outputs$; k++) to[k][last] = out[k];
    }
#endif
}
