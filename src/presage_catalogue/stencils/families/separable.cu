// presage: tune BX = 128, 32, 64, 256
// presage: tune BY = 1, 2, 4
// presage: tune ITEMS = 1, 4, 8
// presage: tune FIRST = 0, 1
// presage: where BX * BY >= 64 and BX * BY <= 512
// presage: scratch middle = $bytes$ * n * h * w
// presage: entry along_one
// presage: grid cdiv(w, BX), cdiv(h, BY * ITEMS), n
// presage: block BX, BY
// presage: entry along_other
// presage: grid cdiv(w, BX), cdiv(h, BY * ITEMS), n
// presage: block BX, BY
//
// Two launches, one sums along rows and one along columns, with the first's results in memory between them. FIRST is the
// axis of the first. A thread computes ITEMS points below each other.

#define REACH $reach$

__device__ float fetch(const float *plane, int y, int x, int h, int w) {
    $fetch$
}

template <int DOWN> __device__ void sum(const float *from, float *to, int h, int w) {
    constexpr float taps[] = {$taps$};
    const float *plane = from + (size_t)blockIdx.z * h * w;
    const int px = blockIdx.x * BX + threadIdx.x, first = (blockIdx.y * BY + threadIdx.y) * ITEMS;
    if (px >= w) return;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int py = first + i;
        if (py >= h) break;
        float total = 0.0f;
#pragma unroll
        for (int k = -REACH; k <= REACH; k++)
            total += taps[k + REACH] * fetch(plane, py + (DOWN ? k : 0), px + (DOWN ? 0 : k), h, w);
        to[((size_t)blockIdx.z * h + py) * w + px] = total;
    }
}

extern "C" __global__ void __launch_bounds__(BX *BY) along_one($arguments$, float *middle) {
    sum<FIRST>(u, middle, h, w);
}

extern "C" __global__ void __launch_bounds__(BX *BY) along_other($arguments$, float *middle) {
    sum<1 - FIRST>(middle, out, h, w);
}
