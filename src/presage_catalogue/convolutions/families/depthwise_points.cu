// presage: entry $entry$
// presage: tune BX = 32, 8, 16, 64, 128, 256
$tall$
// presage: tune ITEMS = 1, 2, 4
// presage: tune ALONG = 0, 1
// presage: tune EDGE = 0, 1, 2
// presage: where BX * BY >= 32 and BX * BY <= 512 and (ITEMS > 1 or ALONG == 0) and (EDGE < 2 or ITEMS == 1)
// presage: grid cdiv(w, BX * ITEMS), cdiv($h$, BY), min($planes$, 65535)
// presage: block BX, BY
//
// A thread computes ITEMS outputs, BX columns apart (ALONG 0) or side by side (1), straight from memory. EDGE 0 looks at
// every tap's place, 1 only at those of outputs near an edge, 2 at places in the flattened plane.

#define ROWS $rows$
#define COLS $cols$

extern "C" __global__ void __launch_bounds__(BX *BY) $entry$($arguments$) {
    $height$
    for (int plane = blockIdx.z; plane < n * c; plane += gridDim.z) {
        const int channel = plane % c, row = blockIdx.y * BY + threadIdx.y;
        const float *from = x + (size_t)plane * h * w, *by = weight + channel * ROWS * COLS;
        if (row >= h) return;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int col = ALONG ? (blockIdx.x * BX + threadIdx.x) * ITEMS + i
                                  : (blockIdx.x * ITEMS + i) * BX + threadIdx.x;
            if (col >= w) break;
            const int top = row - $above$, left = col - $left$;
            const bool inner = EDGE == 1 && top >= 0 && top + ROWS <= h && left >= 0 && left + COLS <= w;
            float value = $begin$;
            if (inner) {
#pragma unroll
                for (int u = 0; u < ROWS; u++)
#pragma unroll
                    for (int v = 0; v < COLS; v++) value += by[u * COLS + v] * from[(top + u) * w + left + v];
            } else {
#pragma unroll
                for (int u = 0; u < ROWS; u++)
#pragma unroll
                    for (int v = 0; v < COLS; v++) {
                        const int p = top + u, q = left + v, at = p * w + q;
                        const bool inside = EDGE == 2 ? at >= 0 && at < h * w : p >= 0 && p < h && q >= 0 && q < w;
                        if (inside) value += by[u * COLS + v] * from[at];
                    }
            }
            y[((size_t)plane * h + row) * w + col] = $silu$;
        }
    }
}
