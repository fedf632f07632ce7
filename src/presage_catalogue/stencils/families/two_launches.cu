// presage: tune BX = 32, 64, 128, 256
// presage: tune BY = 8, 1, 2, 4
// presage: tune ITEMS = 1, 2, 4
// presage: tune EDGE = 0, 1
// presage: where BX * BY >= 64 and BX * BY <= 512
// presage: scratch middle = $bytes$ * n * h * w
// presage: entry first_step
// presage: grid cdiv(w, BX), cdiv(h, BY * ITEMS), n
// presage: block BX, BY
// presage: entry second_step
// presage: grid cdiv(w, BX), cdiv(h, BY * ITEMS), n
// presage: block BX, BY
//
// A launch for each step, with the result of the first in memory between them. A thread computes ITEMS points below each
// other; EDGE 0 looks at every neighbour's place, 1 only at those of points at an edge.

typedef $type$ T;

__device__ T fetch(const T *plane, int y, int x, int h, int w) {
    $fetch$
}

template <class V> __device__ T step(const V &v) {
    $step$
}

__device__ void one_step(const T *from, T *to, int h, int w) {
    const T *plane = from + (size_t)blockIdx.z * h * w;
    const int px = blockIdx.x * BX + threadIdx.x;
    if (px >= w) return;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int py = (blockIdx.y * BY + threadIdx.y) * ITEMS + i;
        if (py >= h) break;
        const bool inner = EDGE && py > 0 && py < h - 1 && px > 0 && px < w - 1;
        to[((size_t)blockIdx.z * h + py) * w + px] =
            inner ? step([&](int dy, int dx) { return plane[(py + dy) * w + px + dx]; })
                  : step([&](int dy, int dx) { return fetch(plane, py + dy, px + dx, h, w); });
    }
}

extern "C" __global__ void __launch_bounds__(BX *BY) first_step($arguments$, T *middle) { one_step(u, middle, h, w); }

extern "C" __global__ void __launch_bounds__(BX *BY) second_step($arguments$, T *middle) { one_step(middle, out, h, w); }
