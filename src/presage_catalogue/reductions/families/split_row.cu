// presage: entry parts
// presage: tune PARTS = 4, 2, 16, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: tune SHARE = 0, 1
// presage: tune COMBINE = 1, 32
// presage: where SHARE == 0 or (UNROLL == 4 and THREADS == 256 and COMBINE == 1 and VECTOR == 4)
// presage: where COMBINE == 1 or UNROLL == 4
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry combine
// presage: grid cdiv(rows * COMBINE, 128)
// presage: block 128
// presage: scratch partial = $state_bytes$ * rows * PARTS
//
// PARTS blocks share a row and leave their states in memory; a second launch merges those, with COMBINE threads a row.
// A block's share of the row is rounded up (SHARE 0) or down (1).

$fold$

$walk$

$block$

template <int N> __device__ State of_part(const float *const *from, int cols, int part) {
    const int vectors = cols / N, share = SHARE == 0 ? (vectors + PARTS - 1) / PARTS : vectors / PARTS;
    return walk<N, UNROLL, true>(from, part * share + threadIdx.x, min(vectors, (part + 1) * share), THREADS);
}

extern "C" __global__ void __launch_bounds__(THREADS)
parts($row_arguments$, State *__restrict__ partial) {
    const float *const all[] = {$in_pointers$};
    const int row = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const float *from[INPUTS];
#pragma unroll
    for (int k = 0; k < INPUTS; k++) from[k] = all[k] + (size_t)row * cols;
    const State s = block_total<0>(cols % VECTOR == 0 ? of_part<VECTOR>(from, cols, part) : of_part<1>(from, cols, part));
    if (threadIdx.x == 0) partial[blockIdx.x] = s;
}

extern "C" __global__ void combine($row_arguments$, State *__restrict__ partial) {
    const int row = (blockIdx.x * 128 + threadIdx.x) / COMBINE, lane = threadIdx.x % COMBINE;
    State s = empty();
    if (row < rows)
        for (int part = lane; part < PARTS; part += COMBINE) merge(&s, &partial[row * PARTS + part]);
    for (int offset = COMBINE / 2; offset > 0; offset /= 2) {
        const State o = from_lane(&s, offset);
        merge(&s, &o);
    }
    if (row < rows && lane == 0) y[row] = finish(&s, cols);
}
