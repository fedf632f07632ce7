// presage: entry $entry$
// presage: tune THREADS = 256, 64, 1024
// presage: tune ITEMS = 4, 1, 16
// presage: tune STAGES = 1, 2
// presage: tune ORDER = 0, 1, 2
// presage: tune BLOCKS = 0, 264, 1056
// presage: where BLOCKS > 0 or STAGES == 1
// presage: where ITEMS > 1 or ORDER == 0
// presage: grid BLOCKS if BLOCKS else cdiv(n, THREADS * ITEMS)
// presage: block THREADS
// presage: shared $bytes$ * max($inputs$, $outputs$) * STAGES * THREADS * ITEMS
//
// A block brings a tile of every input into shared memory, then computes ITEMS elements in each thread: a block's width
// apart (ORDER 0), side by side and straight to memory (1), or side by side and back through shared memory (2). With two
// STAGES the next tile is read meanwhile. BLOCKS 0 launches a block per tile.
$element$

#define TILE (THREADS * ITEMS)
#define ARRAYS ($inputs$ > $outputs$ ? $inputs$ : $outputs$)

__device__ __forceinline__ void apply(const float *in, float *out) {
    $unpack$
    $apply$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float4 room[];
    T(*const tiles)[ARRAYS][TILE] = (T(*)[ARRAYS][TILE])room;
    const T *const from[] = {$in_pointers$};
    T *const to[] = {$out_pointers$};
    T next[$inputs$][ITEMS];

    auto read = [&](int start) {
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int at = start + j * THREADS + threadIdx.x;
#pragma unroll
            for (int k = 0; k < $inputs$; k++)
                if (at < n) next[k][j] = from[k][at];
        }
    };
    auto keep = [&](int stage) {
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
#pragma unroll
            for (int k = 0; k < $inputs$; k++) tiles[stage][k][j * THREADS + threadIdx.x] = next[k][j];
    };

    int stage = 0;
    if (STAGES == 2 && blockIdx.x * TILE < n) {
        read(blockIdx.x * TILE);
        keep(0);
    }
    for (int start = blockIdx.x * TILE; start < n; start += gridDim.x * TILE) {
        const int after = start + gridDim.x * TILE;
        if (STAGES == 2) {
            if (after < n) read(after);
        } else {
            read(start);
            keep(0);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < ITEMS; j++) {
            const int item = ORDER ? threadIdx.x * ITEMS + j : j * THREADS + threadIdx.x;
            float in[$inputs$], out[$outputs$];
#pragma unroll
            for (int k = 0; k < $inputs$; k++) in[k] = tiles[stage][k][item];
            apply(in, out);
#pragma unroll
            for (int k = 0; k < $outputs$; k++) {
                if (ORDER == 2) tiles[stage][k][item] = out[k];
                else if (start + item < n) to[k][start + item] = out[k];
            }
        }
        if (ORDER == 2) {
            __syncthreads();
#pragma unroll
            for (int j = 0; j < ITEMS; j++) {
                const int item = j * THREADS + threadIdx.x;
#pragma unroll
                for (int k = 0; k < $outputs$; k++)
                    if (start + item < n) to[k][start + item] = tiles[stage][k][item];
            }
        }
        if (STAGES == 2) {
            stage ^= 1;
            if (after < n) keep(stage);
        } else __syncthreads();
    }
}
