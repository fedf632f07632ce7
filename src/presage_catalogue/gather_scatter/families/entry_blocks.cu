// presage: entry $entry$
// presage: tune THREADS = 128, 64, 256
// presage: tune ROWS = 8, 1, 32
// presage: tune STAGED = 0, 1
// presage: tune MEET = 0, 1
// presage: grid cdiv(rows, ROWS)
// presage: block THREADS
// presage: shared 4 * ROWS + (4 * cols if STAGED > 0 else 0)
//
// A block takes ROWS rows, one after the other, all its threads together. STAGED brings x to shared memory first. The
// threads' sums meet by shuffles and then atomic additions (MEET 0), or by atomic additions alone (1).

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float room[];
    float *sums = room, *near = room + ROWS;
    const int first = blockIdx.x * ROWS, count = min(ROWS, rows - first);
    for (int i = threadIdx.x; i < ROWS; i += THREADS) sums[i] = 0.0f;
    if (STAGED)
        for (int i = threadIdx.x; i < cols; i += THREADS) near[i] = x[i];
    __syncthreads();
    for (int k = 0; k < count; k++) {
        const int r = first + k, begin = $entry_begin$, end = $entry_end$, step = $entry_step$;
        float sum = 0.0f;
        for (int j = begin + (int)threadIdx.x * step; j < end; j += THREADS * step)
            sum += values[j] * (STAGED ? near[columns[j]] : x[columns[j]]);
        if (MEET == 0)
            for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        if (MEET == 1 || threadIdx.x % 32 == 0) atomicAdd(sums + k, sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) y[first + i] = sums[i];
}
