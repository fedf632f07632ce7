// presage: entry clear
// presage: tune LANES = 32, 8, 128
// presage: tune THREADS = 256, 128, 1024
// presage: tune RUN = 1, 4, 16
// presage: tune HINT = 0, 1
// presage: where LANES <= THREADS
// presage: grid cdiv(targets * cols, 256)
// presage: block 256
// presage: entry $scatter_entry$
// presage: grid cdiv(n, THREADS // LANES * RUN)
// presage: block THREADS
//
// LANES threads take RUN neighbouring rows of x, one after the other, and read each row's index once. HINT reads x with
// the hint that it is not needed again.
$rows_wide$

extern "C" __global__ void clear($scatter_arguments$) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < targets * cols) y[i] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS) $scatter_entry$($scatter_arguments$) {
    const int first = (blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES) * RUN, lane = threadIdx.x % LANES;
    for (int r = first; r < min(n, first + RUN); r++) {
        float *to = y + (size_t)indices[r] * cols;
        const float *from = x + (size_t)r * cols;
        for (int c = lane; c < cols; c += LANES) atomicAdd(to + c, HINT ? __ldcs(from + c) : from[c]);
    }
}
