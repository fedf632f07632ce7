// presage: entry $entry$
// presage: tune THREADS = 256, 64, 128, 512, 1024, 384
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1, 8
// presage: tune REDUCE = 0, 1, 2
// presage: tune ORDER = 0, 1
// presage: tune BLOCKS = 0, 264
// presage: where REDUCE == 0 or (UNROLL == 4 and BLOCKS == 0)
// presage: where ORDER == 0 or (UNROLL == 1 and BLOCKS == 0)
// presage: where BLOCKS == 0 or (VECTOR == 4 and UNROLL != 1)
// presage: grid BLOCKS if BLOCKS else rows
// presage: block THREADS
//
// A block takes a whole row, UNROLL loads of VECTOR floats in flight at once. Its threads take turns along the row
// (ORDER 0) or have a stretch of it each (1). BLOCKS 0 launches a block per row, otherwise so many walk over the rows.
// REDUCE is how the threads' states meet.

$fold$

$walk$

$block$

template <int N> __device__ State of_thread(const float *const *from, int cols) {
    const int vectors = cols / N;
    if (ORDER == 0) return walk<N, UNROLL, true>(from, threadIdx.x, vectors, THREADS);
    const int share = (vectors + THREADS - 1) / THREADS;
    return walk<N, UNROLL, true>(from, threadIdx.x * share, min(vectors, ((int)threadIdx.x + 1) * share), 1);
}

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($row_arguments$) {
    const float *const all[] = {$in_pointers$};
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *from[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; k++) from[k] = all[k] + (size_t)row * cols;
        State s = cols % VECTOR == 0 ? of_thread<VECTOR>(from, cols) : of_thread<1>(from, cols);
        s = block_total<REDUCE>(s);
        if (threadIdx.x == 0) y[row] = finish(&s, cols);
        if (BLOCKS) __syncthreads();
    }
}
