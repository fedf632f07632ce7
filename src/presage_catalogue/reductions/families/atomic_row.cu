// presage: entry clear
// presage: tune PARTS = 4, 1, 16, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: tune LEVEL = 2, 1, 0
// presage: where LEVEL > 0 or PARTS == 4
// presage: grid cdiv(rows, 256)
// presage: block 256
// presage: entry parts
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry answers
// presage: grid cdiv(rows, 256)
// presage: block 256
// presage: scratch total = $state_bytes$ * rows
//
// PARTS blocks share a row and add to its state in memory atomically: each thread (LEVEL 0), warp (1) or block (2).

$fold$

$walk$

$block$

extern "C" __global__ void clear($row_arguments$, State *__restrict__ total) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < rows) total[row] = empty();
}

extern "C" __global__ void __launch_bounds__(THREADS)
parts($row_arguments$, State *__restrict__ total) {
    const float *const all[] = {$in_pointers$};
    const int row = blockIdx.x / PARTS, first = blockIdx.x % PARTS * THREADS + threadIdx.x;
    const float *from[INPUTS];
#pragma unroll
    for (int k = 0; k < INPUTS; k++) from[k] = all[k] + (size_t)row * cols;
    State s = cols % VECTOR == 0 ? walk<VECTOR, 4, true>(from, first, cols / VECTOR, PARTS * THREADS)
                                 : walk<1, 4, true>(from, first, cols, PARTS * THREADS);
    if (LEVEL == 2) s = block_total<0>(s);
    if (LEVEL == 1)
        for (int offset = 16; offset > 0; offset /= 2) {
            const State o = from_lane(&s, offset);
            merge(&s, &o);
        }
    State *to = &total[row];
    if (LEVEL == 0 || (LEVEL == 1 && threadIdx.x % 32 == 0) || threadIdx.x == 0) {
        $atomic$
    }
}

extern "C" __global__ void answers($row_arguments$, State *__restrict__ total) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < rows) y[row] = finish(&total[row], cols);
}
