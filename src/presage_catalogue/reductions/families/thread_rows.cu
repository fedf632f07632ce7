// presage: entry $entry$
// presage: tune THREADS = 256, 32, 64
// presage: tune STAGED = 0, 8, 32
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: tune PAD = 1, 0
// presage: where STAGED == 0 or (VECTOR == 4 and UNROLL == 4)
// presage: where STAGED > 0 or PAD == 1
// presage: grid cdiv(rows, THREADS)
// presage: block THREADS
// presage: shared 4 * $inputs$ * THREADS * (STAGED + PAD) if STAGED else 0
//
// One thread per row, UNROLL loads of VECTOR floats at once. STAGED columns of all the block's rows go through shared
// memory first, read in order and set down with PAD floats between rows, unless it is 0.

$fold$

$walk$

__device__ State staged(const float *const *all, int rows, int cols) {
    extern __shared__ __align__(16) float tile[];
    const int pitch = STAGED + PAD, width = STAGED > 0 ? STAGED : 1;
    const int first = blockIdx.x * THREADS;
    State s = empty();
    for (int start = 0; start < cols; start += width) {
        for (int k = 0; k < INPUTS; k++)
            for (int at = threadIdx.x; at < THREADS * width; at += THREADS) {
                const int row = at / width, col = at % width;
                if (first + row < rows && start + col < cols)
                    tile[(k * THREADS + row) * pitch + col] = all[k][(size_t)(first + row) * cols + start + col];
            }
        __syncthreads();
        for (int col = 0; col < min(width, cols - start); col++) {
            float in[INPUTS];
#pragma unroll
            for (int k = 0; k < INPUTS; k++) in[k] = tile[(k * THREADS + threadIdx.x) * pitch + col];
            include(&s, in, start + col);
        }
        __syncthreads();
    }
    return s;
}

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($row_arguments$) {
    const float *const all[] = {$in_pointers$};
    const int row = blockIdx.x * THREADS + threadIdx.x;
    if (STAGED > 0) {
        const State s = staged(all, rows, cols);
        if (row < rows) y[row] = finish(&s, cols);
        return;
    }
    if (row >= rows) return;
    const float *from[INPUTS];
#pragma unroll
    for (int k = 0; k < INPUTS; k++) from[k] = all[k] + (size_t)row * cols;
    const State s = cols % VECTOR == 0 ? walk<VECTOR, UNROLL, true>(from, 0, cols / VECTOR, 1)
                                       : walk<1, UNROLL, true>(from, 0, cols, 1);
    y[row] = finish(&s, cols);
}
