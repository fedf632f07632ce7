// presage: entry $entry$
// presage: tune ROWS = 1, 2, 8
// presage: tune THREADS = 256, 128, 1024
// presage: tune VECTOR = 4, 1
// presage: tune OUTER = 0, 1
// presage: where OUTER == 0 or ROWS > 1
// presage: grid cdiv(rows, ROWS)
// presage: block THREADS
// presage: shared 4 * ROWS * cols
//
// A block brings ROWS rows of x to shared memory, in whole lines of VECTOR elements where the width allows it, and picks
// from there. OUTER 0 takes the rows one after the other, 1 all rows' elements of a column together.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ __align__(16) float staged[];
    const int first = blockIdx.x * ROWS, count = min(ROWS, rows - first), total = count * cols;
    const float *from = x + (size_t)first * cols;
    if ((size_t)first * cols % VECTOR == 0 && total % VECTOR == 0)
        for (int i = threadIdx.x; i < total / VECTOR; i += THREADS)
            ((Pack<VECTOR> *)staged)[i] = ((const Pack<VECTOR> *)from)[i];
    else
        for (int i = threadIdx.x; i < total; i += THREADS) staged[i] = from[i];
    __syncthreads();
    for (int i = threadIdx.x; i < count * picked; i += THREADS) {
        const int k = OUTER ? i % count : i / picked, c = OUTER ? i / count : i % picked, r = first + k;
        y[(size_t)r * picked + c] = staged[k * cols + (int)$pick$];
    }
}
