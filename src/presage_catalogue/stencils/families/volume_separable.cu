// presage: tune BX = 128, 32, 64, 256
// presage: tune BY = 1, 2, 4
// presage: tune ITEMS = 1, 4
// presage: tune ORDER = 0, 1
// presage: where BX * BY >= 64 and BX * BY <= 512
// presage: scratch one = 4 * n * d * h * w
// presage: scratch two = 4 * n * d * h * w
// presage: entry first_axis
// presage: grid cdiv(w, BX), cdiv(h, BY), n * cdiv(d, ITEMS)
// presage: block BX, BY
// presage: entry second_axis
// presage: grid cdiv(w, BX), cdiv(h, BY), n * cdiv(d, ITEMS)
// presage: block BX, BY
// presage: entry third_axis
// presage: grid cdiv(w, BX), cdiv(h, BY), n * cdiv(d, ITEMS)
// presage: block BX, BY
//
// Three launches, one for each axis, with their results in memory between them: along x, y, z (ORDER 0) or z, y, x (1).
// A thread computes ITEMS points behind each other.

template <int AXIS> __device__ void sum(const float *from, float *to, int d, int h, int w) {
    constexpr float taps[] = {$products$};
    const int slabs = (d + ITEMS - 1) / ITEMS, image = blockIdx.z / slabs;
    const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
    if (x >= w || y >= h) return;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int z = blockIdx.z % slabs * ITEMS + i;
        if (z >= d) break;
        const size_t at = (((size_t)image * d + z) * h + y) * w + x;
        const int place = AXIS == 0 ? x : AXIS == 1 ? y : z, length = AXIS == 0 ? w : AXIS == 1 ? h : d;
        const int apart = AXIS == 0 ? 1 : AXIS == 1 ? w : w * h;
        float total = taps[1] * from[at];
        if (place > 0) total += taps[0] * from[at - apart];
        if (place < length - 1) total += taps[2] * from[at + apart];
        to[at] = total;
    }
}

extern "C" __global__ void __launch_bounds__(BX *BY) first_axis($arguments$, float *one, float *two) {
    sum<ORDER ? 2 : 0>(u, one, d, h, w);
}

extern "C" __global__ void __launch_bounds__(BX *BY) second_axis($arguments$, float *one, float *two) {
    sum<1>(one, two, d, h, w);
}

extern "C" __global__ void __launch_bounds__(BX *BY) third_axis($arguments$, float *one, float *two) {
    sum<ORDER ? 0 : 2>(two, out, d, h, w);
}
