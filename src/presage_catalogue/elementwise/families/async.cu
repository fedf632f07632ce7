// presage: entry $entry$
// presage: tune THREADS = 256, 64, 1024
// presage: tune WORD = 16, 4
// presage: tune WORDS = 1, 4
// presage: tune STAGES = 2, 4, 8
// presage: tune BLOCKS = 264, 1056
// presage: tune ORDER = 0, 1
// presage: where ORDER == 0 or WORDS > 1
// presage: grid BLOCKS
// presage: block THREADS
// presage: shared $inputs$ * STAGES * WORDS * THREADS * WORD
//
// Copies tiles into a ring of STAGES places in shared memory while earlier ones are computed. A thread copies WORDS words
// of WORD bytes of every input at a time, and with ORDER 0 computes just those; with ORDER 1 it computes as many that
// lie side by side.
#include <cuda_pipeline_primitives.h>
$element$

#define LANES (WORD / (int)sizeof(T))
#define TILE (THREADS * WORDS * LANES)
struct alignas(WORD) Word { T at[LANES]; };

__device__ __forceinline__ void apply(const float *in, float *out) {
    $unpack$
    $apply$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float4 room[];
    Word(*const ring)[$inputs$][THREADS * WORDS] = (Word(*)[$inputs$][THREADS * WORDS])room;
    const T *const from[] = {$in_pointers$};
    T *const to[] = {$out_pointers$};
    const int tiles = (n + TILE - 1) / TILE;

    auto fetch = [&](int tile, int stage) {
        if (tile < tiles) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                const int word = w * THREADS + threadIdx.x;
                const int at = tile * TILE + word * LANES;
#pragma unroll
                for (int k = 0; k < $inputs$; k++) {
                    Word *into = &ring[stage][k][word];
                    if (at + LANES <= n) __pipeline_memcpy_async(into, from[k] + at, WORD);
                    else
                        for (int i = 0; at + i < n; i++) into->at[i] = from[k][at + i];
                }
            }
        }
        __pipeline_commit();
    };

#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) fetch(blockIdx.x + s * gridDim.x, s);
    int stage = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        fetch(tile + (STAGES - 1) * gridDim.x, (stage + STAGES - 1) % STAGES);
        __pipeline_wait_prior(STAGES - 1);
        if (ORDER) __syncthreads();
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const int word = ORDER ? threadIdx.x * WORDS + w : w * THREADS + threadIdx.x;
            const int at = tile * TILE + word * LANES;
            Word kept[$inputs$], made[$outputs$];
#pragma unroll
            for (int k = 0; k < $inputs$; k++) kept[k] = ring[stage][k][word];
#pragma unroll
            for (int i = 0; i < LANES; i++) {
                $apply_to_vector$
            }
#pragma unroll
            for (int k = 0; k < $outputs$; k++) {
                if (at + LANES <= n) *(Word *)(to[k] + at) = made[k];
                else {
#pragma unroll
                    for (int i = 0; i < LANES; i++)
                        if (at + i < n) to[k][at + i] = made[k].at[i];
                }
            }
        }
        if (ORDER) __syncthreads();
        stage = (stage + 1) % STAGES;
    }
}
