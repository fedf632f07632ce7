// presage: entry $entry$
// presage: tune THREADS = 256, 64, 128, 512
// presage: tune ITEMS = 1, 2, 4, 8
// presage: tune ORDER = 0, 1
// presage: tune SPECIAL = 1, 0
// presage: tune TAIL = 1, 0
// presage: where (ITEMS > 1 or ORDER == 0) and (TAIL == 1 or ITEMS == 8 or ITEMS == 4 and SPECIAL == 1)
// presage: grid cdiv($planes$ * $rows$ * $cols$, THREADS * ITEMS) if TAIL else max(1, $planes$ * $rows$ * $cols$ // (THREADS * ITEMS))
// presage: block THREADS
//
// A thread computes ITEMS outputs, each from all elements of its window: THREADS apart (ORDER 0) or side by side (1).
// SPECIAL has code of its own for windows of 2, 3 and 4, with the loops unrolled. TAIL also launches a block for the
// outputs that do not fill one.

$state$

// SIZE is the window's side, 0 where it is not known beforehand.
template <int SIZE> __device__ State reduce(const float *plane, int top, int left, int w, int high, int wide) {
    State s = $start$;
    if (SIZE) wide = SIZE;
    if (SIZE && $square$) high = SIZE;
#pragma unroll
    for (int u = 0; u < (SIZE && $square$ ? SIZE : high); u++)
#pragma unroll
        for (int v = 0; v < (SIZE ? SIZE : wide); v++) {
            const int index = (top + u) * w + left + v;
            const float x = plane[index];
            $take$
        }
    return s;
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    $geometry$
    const int size = n * c * rows * cols;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = ORDER ? (blockIdx.x * THREADS + threadIdx.x) * ITEMS + i
                             : blockIdx.x * THREADS * ITEMS + i * THREADS + threadIdx.x;
        if (at >= size) return;
        const int top = at / cols % rows * down, left = at % cols * across;
        const float *plane = x + (size_t)(at / cols / rows) * h * w;
        State s = SPECIAL && wide == 2   ? reduce<2>(plane, top, left, w, high, wide)
                  : SPECIAL && wide == 3 ? reduce<3>(plane, top, left, w, high, wide)
                  : SPECIAL && wide == 4 ? reduce<4>(plane, top, left, w, high, wide)
                                         : reduce<0>(plane, top, left, w, high, wide);
        $write$
    }
}
