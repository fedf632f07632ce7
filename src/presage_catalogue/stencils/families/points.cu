// presage: entry $entry$
// presage: tune BX = 32, 8, 16, 64, 128, 256
// presage: tune BY = 8, 1, 4, 16
// presage: tune ITEMS = 1, 2, 4
// presage: tune ALONG = 0, 1, 2
// presage: tune EDGE = 0, 1, 2
// presage: where BX * BY >= 64 and BX * BY <= 512 and (ITEMS > 1 or ALONG == 0)
// presage: where EDGE < 2 or (ITEMS == 1 or BX == 64 and ALONG == 1)
// presage: grid cdiv(w, BX * (ITEMS if ALONG else 1)), cdiv(h, BY * (1 if ALONG else ITEMS)), n
// presage: block BX, BY
//
// A thread computes ITEMS points straight from memory, with the reuse left to the caches: BY rows apart (ALONG 0), BX
// columns apart (1) or side by side (2). EDGE 0 looks at every neighbour's place, 1 only at those of points near an
// edge, 2 at places in the flattened image.

#define RY $ry$
#define RX $rx$
typedef $type$ T;

template <bool CHECKED> __device__ T fetch(const T *plane, int y, int x, int h, int w) {
    if (!CHECKED) return plane[y * w + x];
    if (EDGE == 2) {
        $flat$
    }
    $fetch$
}

extern "C" __global__ void __launch_bounds__(BX *BY) $entry$($arguments$) {
    const T *plane = u + (size_t)blockIdx.z * h * w;
    $prepare$
    const auto point = [&](const auto &v, int y, int x, size_t at) -> T {
        $formula$
    };
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int down = ALONG ? blockIdx.y : blockIdx.y * ITEMS + i;
        const int py = down * BY + threadIdx.y;
        const int px = ALONG == 0   ? blockIdx.x * BX + threadIdx.x
                       : ALONG == 1 ? (blockIdx.x * ITEMS + i) * BX + threadIdx.x
                                    : (blockIdx.x * BX + threadIdx.x) * ITEMS + i;
        if (py >= h || px >= w) continue;
        const size_t at = ((size_t)blockIdx.z * h + py) * w + px;
        if (EDGE == 1 && py >= RY && py < h - RY && px >= RX && px < w - RX)
            out[at] = point([&](int dy, int dx) { return fetch<false>(plane, py + dy, px + dx, h, w); }, py, px, at);
        else
            out[at] = point([&](int dy, int dx) { return fetch<true>(plane, py + dy, px + dx, h, w); }, py, px, at);
    }
}
