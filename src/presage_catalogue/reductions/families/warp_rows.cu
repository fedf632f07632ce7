// presage: entry $entry$
// presage: tune LANES = 32, 16, 8, 4
// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: tune REST = 1, 0
// presage: where REST == 1 or (UNROLL == 4 and THREADS == 256 and VECTOR == 4)
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row, so that no two warps ever wait for each other. UNROLL loads of VECTOR floats are
// in flight at once; REST goes over what they leave.

$fold$

$walk$

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($row_arguments$) {
    const float *const all[] = {$in_pointers$};
    const int row = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    State s = empty();
    // Threads past the last row keep an empty state: the shuffles need every lane of a warp.
    if (row < rows) {
        const float *from[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; k++) from[k] = all[k] + (size_t)row * cols;
        if (cols % VECTOR == 0) s = walk<VECTOR, UNROLL, REST>(from, lane, cols / VECTOR, LANES);
        else s = walk<1, UNROLL, REST>(from, lane, cols, LANES);
    }
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        const State o = from_lane(&s, offset);
        merge(&s, &o);
    }
    if (row < rows && lane == 0) y[row] = finish(&s, cols);
}
