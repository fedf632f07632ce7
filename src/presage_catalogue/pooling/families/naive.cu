// presage: entry $entry$
// presage: grid cdiv($planes$ * $rows$ * $cols$, 256)
// presage: block 256

$state$

extern "C" __global__ void $entry$($arguments$) {
    $geometry$
    const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= (size_t)n * c * rows * cols) return;
    const int top = at / cols % rows * down, left = at % cols * across;
    const float *plane = x + at / cols / rows * h * w;
    State s = $start$;
    for (int u = 0; u < high; u++)
        for (int v = 0; v < wide; v++) {
            const int index = (top + u) * w + left + v;
            const float x = plane[index];
            $take$
        }
    $write$
}
