// presage: entry $entry$
// presage: tune TW = $tile_cols$
// presage: tune TH = $tile_rows$
// presage: tune THREADS = 256, 64, 128, 512
// presage: tune METHOD = 0, 1, 2
// presage: where TW * TH * 4 >= THREADS and TW * TH <= 16 * THREADS
// presage: grid $planes$ * cdiv($rows$, TH) * cdiv($cols$, TW)
// presage: block THREADS
// presage: shared max(4 * ((TH - 1) * $down$ + $high$) * ((TW - 1) * $across$ + $wide$), 16) + $state_bytes$ * TW * ((TH - 1) * $down$ + $high$)
//
// A block computes TH by TW outputs of a plane from the part of x that they need, in shared memory. METHOD 0 goes through
// each window; 1 and 2 first work out every row's part of the windows, 1 from shared memory and 2 from x itself.

$state$

__device__ void merge(State &s, const State &b) { $merge$ }

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ __align__(16) unsigned char memory[];
    $geometry$
    const int most_tall = (TH - 1) * down + high, most_wide = (TW - 1) * across + wide;
    State *along = (State *)memory;
    float *stage = (float *)(along + TW * most_tall);
    const int tiles_down = (rows + TH - 1) / TH, tiles_across = (cols + TW - 1) / TW;
    const int q = blockIdx.x % tiles_across * TW, p = blockIdx.x / tiles_across % tiles_down * TH;
    const size_t image = blockIdx.x / tiles_across / tiles_down;
    const float *plane = x + image * h * w;
    const int top = p * down, left = q * across;
    const int tall = min(most_tall, h - top), broad = min(most_wide, w - left);
    if (METHOD < 2) {
        for (int i = threadIdx.x; i < tall * broad; i += THREADS)
            stage[i / broad * most_wide + i % broad] = plane[(top + i / broad) * w + left + i % broad];
        __syncthreads();
    }
    if (METHOD > 0) {
        for (int i = threadIdx.x; i < tall * TW; i += THREADS) {
            const int u = i / TW, j = i % TW;
            if (q + j >= cols) continue;
            State s = $start$;
            for (int v = 0; v < wide; v++) {
                const int index = (top + u) * w + left + j * across + v;
                const float x = METHOD == 1 ? stage[u * most_wide + j * across + v] : plane[index];
                $take$
            }
            along[i] = s;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < TH * TW; i += THREADS) {
        const int row = i / TW, j = i % TW;
        if (p + row >= rows || q + j >= cols) continue;
        State s = $start$;
        for (int u = 0; u < high; u++) {
            if (METHOD > 0) {
                merge(s, along[(row * down + u) * TW + j]);
                continue;
            }
            for (int v = 0; v < wide; v++) {
                const int index = (top + row * down + u) * w + left + j * across + v;
                const float x = stage[(row * down + u) * most_wide + j * across + v];
                $take$
            }
        }
        const size_t at = (image * rows + p + row) * cols + q + j;
        $write$
    }
}
