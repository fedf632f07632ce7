// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = $wide$, 1
// presage: tune ITEMS = 1, 4
// presage: tune BLOCKS = 528, 132, 2112
// presage: scratch next = 4
// presage: entry $entry$_reset
// presage: grid 1
// presage: block 1
// presage: entry $entry$
// presage: grid BLOCKS
// presage: block THREADS
//
// Blocks take the next tile off a counter in memory when they are done with one; a first launch sets it to zero. A tile
// has ITEMS vectors for each thread.
$element$

#define TILE (THREADS * ITEMS * VECTOR)
template <int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
typedef Pack<VECTOR> Vector;

__device__ __forceinline__ void apply(const float *in, float *out) {
    $unpack$
    $apply$
}

extern "C" __global__ void $entry$_reset($arguments$, int *next) { *next = 0; }

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$, int *next) {
    __shared__ int taken;
    const T *const from[] = {$in_pointers$};
    T *const to[] = {$out_pointers$};
    const int tiles = (n + TILE - 1) / TILE;
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        __syncthreads();
        const int tile = taken;
        __syncthreads();
        if (tile >= tiles) return;
        Vector kept[ITEMS][$inputs$];
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int at = tile * TILE + (j * THREADS + threadIdx.x) * VECTOR;
#pragma unroll
            for (int k = 0; k < $inputs$; k++) {
                if (at + VECTOR <= n) kept[j][k] = *(const Vector *)(from[k] + at);
                else {
#pragma unroll
                    for (int i = 0; i < VECTOR; i++)
                        if (at + i < n) kept[j][k].at[i] = from[k][at + i];
                }
            }
        }
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int at = tile * TILE + (j * THREADS + threadIdx.x) * VECTOR;
            Vector made[$outputs$];
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                float in[$inputs$], out[$outputs$];
#pragma unroll
                for (int k = 0; k < $inputs$; k++) in[k] = kept[j][k].at[i];
                apply(in, out);
#pragma unroll
                for (int k = 0; k < $outputs$; k++) made[k].at[i] = out[k];
            }
#pragma unroll
            for (int k = 0; k < $outputs$; k++) {
                if (at + VECTOR <= n) *(Vector *)(to[k] + at) = made[k];
                else {
#pragma unroll
                    for (int i = 0; i < VECTOR; i++)
                        if (at + i < n) to[k][at + i] = made[k].at[i];
                }
            }
        }
    }
}
