// presage: entry clear
// presage: tune PARTS = 4, 8, 16, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: where UNROLL == 4 or THREADS == 256
// presage: grid cdiv(rows, 256)
// presage: block 256
// presage: entry parts
// presage: grid rows * PARTS
// presage: block THREADS
// presage: scratch partial = $state_bytes$ * rows * PARTS
// presage: scratch done = 4 * rows
//
// PARTS blocks share a row and leave their states in memory; whichever of them is the last to finish merges them all.

$fold$

$walk$

$block$

extern "C" __global__ void clear($row_arguments$, State *__restrict__ partial, int *__restrict__ done) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < rows) done[row] = 0;
}

template <int N> __device__ State of_part(const float *const *from, int cols, int part) {
    const int vectors = cols / N;
    return walk<N, UNROLL, true>(from, part * THREADS + threadIdx.x, vectors, PARTS * THREADS);
}

extern "C" __global__ void __launch_bounds__(THREADS)
parts($row_arguments$, State *partial, int *__restrict__ done) {
    const float *const all[] = {$in_pointers$};
    const int row = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const float *from[INPUTS];
#pragma unroll
    for (int k = 0; k < INPUTS; k++) from[k] = all[k] + (size_t)row * cols;
    State s = block_total<0>(cols % VECTOR == 0 ? of_part<VECTOR>(from, cols, part) : of_part<1>(from, cols, part));
    if (threadIdx.x != 0) return;
    partial[row * PARTS + part] = s;
    __threadfence();
    if (atomicAdd(&done[row], 1) != PARTS - 1) return;
    __threadfence();
    s = empty();
    for (int p = 0; p < PARTS; p++) merge(&s, &partial[row * PARTS + p]);
    y[row] = finish(&s, cols);
}
