// presage: entry $entry$
// presage: tune ROWS = $strip_rows$
// presage: tune COLS = 1, 2, 4, 8
// presage: tune THREADS = 128, 64, 256, 512
// presage: tune SPECIAL = 1, 0
// presage: where ROWS * COLS <= 16
// presage: grid cdiv($planes$ * cdiv($rows$, ROWS) * cdiv($cols$, COLS), THREADS)
// presage: block THREADS
//
// A thread computes ROWS outputs below each other, COLS wide. It goes down the rows of x once: what a row comes to
// counts for every window that covers it. SPECIAL has code of its own for windows of 2, 3 and 4, with unrolled loops.

$state$

__device__ void merge(State &s, const State &b) { $merge$ }

template <int WIDE>
__device__ void strip(const float *plane, State (&all)[ROWS][COLS], int top, int left, int w, int high, int wide, int down,
                      int across, int rows, int cols) {
    if (WIDE) wide = WIDE;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            const State s = $start$;
            all[i][j] = s;
        }
    const int last = (min(ROWS, rows) - 1) * down + high;
    for (int u = 0; u < last; u++) {
        State along[COLS];
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            State s = $start$;
            along[j] = s;
            if (j >= cols) continue;
#pragma unroll
            for (int v = 0; v < (WIDE ? WIDE : wide); v++) {
                const int index = (top + u) * w + left + j * across + v;
                const float x = plane[index];
                $take$
            }
            along[j] = s;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (u >= i * down && u < i * down + high)
#pragma unroll
                for (int j = 0; j < COLS; j++) merge(all[i][j], along[j]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    $geometry$
    const int strips = (rows + ROWS - 1) / ROWS, groups = (cols + COLS - 1) / COLS;
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread >= n * c * strips * groups) return;
    const int q = thread % groups * COLS, p = thread / groups % strips * ROWS, image = thread / groups / strips;
    const float *plane = x + (size_t)image * h * w;
    State all[ROWS][COLS];
    const int top = p * down, left = q * across;
    if (SPECIAL && wide == 2) strip<2>(plane, all, top, left, w, high, wide, down, across, rows - p, cols - q);
    else if (SPECIAL && wide == 3) strip<3>(plane, all, top, left, w, high, wide, down, across, rows - p, cols - q);
    else if (SPECIAL && wide == 4) strip<4>(plane, all, top, left, w, high, wide, down, across, rows - p, cols - q);
    else strip<0>(plane, all, top, left, w, high, wide, down, across, rows - p, cols - q);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            if (p + i >= rows || q + j >= cols) continue;
            const State s = all[i][j];
            const size_t at = ((size_t)image * rows + p + i) * cols + q + j;
            $write$
        }
}
