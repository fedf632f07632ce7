// presage: tune THREADS = 256, 64, 128, 512
// presage: tune ITEMS = 1, 4, 16
// presage: tune ORDER = 0, 1
// presage: where ITEMS > 1 or ORDER == 0
// presage: scratch middle = $state_bytes$ * $planes$ * $h$ * $cols$
// presage: entry along_rows
// presage: grid cdiv($planes$ * $h$ * $cols$, THREADS * ITEMS)
// presage: block THREADS
// presage: entry down_columns
// presage: grid cdiv($planes$ * $rows$ * $cols$, THREADS * ITEMS)
// presage: block THREADS
//
// Two launches: one works out the part of the windows in every row of x, one merges those down the columns. A thread
// computes ITEMS results, THREADS apart (ORDER 0) or side by side (1).

$state$

__device__ void merge(State &s, const State &b) { $merge$ }

__device__ int place(int i) {
    return ORDER ? (blockIdx.x * THREADS + threadIdx.x) * ITEMS + i
                 : (blockIdx.x * ITEMS + i) * THREADS + threadIdx.x;
}

extern "C" __global__ void __launch_bounds__(THREADS) along_rows($arguments$, State *middle) {
    $geometry$
    for (int i = 0; i < ITEMS; i++) {
        const int at = place(i);
        if (at >= n * c * h * cols) return;
        const int row = at / cols % h, left = at % cols * across;
        const float *plane = x + (size_t)(at / cols / h) * h * w;
        State s = $start$;
        for (int v = 0; v < wide; v++) {
            const int index = row * w + left + v;
            const float x = plane[index];
            $take$
        }
        middle[at] = s;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) down_columns($arguments$, State *middle) {
    $geometry$
    for (int i = 0; i < ITEMS; i++) {
        const int at = place(i);
        if (at >= n * c * rows * cols) return;
        const int top = at / cols % rows * down, col = at % cols;
        const State *plane = middle + (size_t)(at / cols / rows) * h * cols;
        State s = $start$;
        for (int u = 0; u < high; u++) merge(s, plane[(top + u) * cols + col]);
        $write$
    }
}
