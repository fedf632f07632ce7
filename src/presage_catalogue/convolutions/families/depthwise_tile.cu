// presage: entry $entry$
// presage: tune TX = $tile_cols$
$high$
// presage: tune THREADS = 256, 64, 128, 512
// presage: tune PAD = 0, 1
// presage: tune BATCH = 1, 2, 4
// presage: where TX * TY >= 64 and 2 * TX * TY >= THREADS and TX * TY <= 16 * THREADS
// presage: grid $planes$ * cdiv($h$, TY) * cdiv(w, TX)
// presage: block THREADS
// presage: shared 4 * (TY + $rows$ - 1) * (TX + $cols$ - 1 + PAD)
//
// A block brings the part of a plane that TX by TY outputs need into shared memory, in rows that are PAD longer than they
// need be. Threads take outputs THREADS apart, BATCH of them at a time.

#define ROWS $rows$
#define COLS $cols$
#define WIDE (TX + COLS - 1)
#define TALL (TY + ROWS - 1)
#define PITCH (WIDE + PAD)

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float tile[];
    $height$
    const int across = (w + TX - 1) / TX, down = (h + TY - 1) / TY;
    const int q = blockIdx.x % across * TX, p = blockIdx.x / across % down * TY, plane = blockIdx.x / across / down;
    const int channel = plane % c;
    const float *from = x + (size_t)plane * h * w;
    for (int i = threadIdx.x; i < TALL * WIDE; i += THREADS) {
        const int row = p - $above$ + i / WIDE, col = q - $left$ + i % WIDE;
        tile[i / WIDE * PITCH + i % WIDE] = row >= 0 && row < h && col >= 0 && col < w ? from[row * w + col] : 0.0f;
    }
    float by[ROWS * COLS];
#pragma unroll
    for (int k = 0; k < ROWS * COLS; k++) by[k] = weight[channel * ROWS * COLS + k];
    __syncthreads();
    for (int first = threadIdx.x; first < TX * TY; first += BATCH * THREADS) {
        float sum[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) sum[b] = $begin$;
#pragma unroll
        for (int k = 0; k < ROWS * COLS; k++)
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                const int i = min(first + b * THREADS, TX * TY - 1);
                sum[b] += by[k] * tile[(i / TX + k / COLS) * PITCH + i % TX + k % COLS];
            }
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int i = first + b * THREADS, row = p + i / TX, col = q + i % TX;
            const float value = sum[b];
            if (i < TX * TY && row < h && col < w) y[((size_t)plane * h + row) * w + col] = $silu$;
        }
    }
}
