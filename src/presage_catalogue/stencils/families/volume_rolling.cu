// presage: entry $entry$
// presage: tune DEPTH = 8, 4, 16, 32, 64
// presage: tune BX = 32, 16, 64, 128
// presage: tune BY = 4, 1, 2, 8
// presage: tune UNROLL = 1, 3
// presage: where BX * BY >= 64 and BX * BY <= 512
// presage: grid cdiv(w, BX), cdiv(h, BY), n * cdiv(d, DEPTH)
// presage: block BX, BY
//
// A thread goes through DEPTH planes at one place. What it needs of three planes stays in registers and moves by one
// plane for each step, which loads only what is new.

extern "C" __global__ void __launch_bounds__(BX *BY) $entry$($arguments$) {
    const int slabs = (d + DEPTH - 1) / DEPTH, image = blockIdx.z / slabs, first = blockIdx.z % slabs * DEPTH;
    const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
    if (x >= w || y >= h) return;
    const float *whole = u + (size_t)image * d * h * w;
    float *to = out + (size_t)image * d * h * w;
    const auto point = [&](const auto &v) -> float {
        $volume$
    };
    float window[3][3][3];
    const auto load = [&](float (&plane)[3][3], int z) {
#pragma unroll
        for (int i = -1; i <= 1; i++)
#pragma unroll
            for (int j = -1; j <= 1; j++) {
                const bool inside = z >= 0 && z < d && y + i >= 0 && y + i < h && x + j >= 0 && x + j < w;
                plane[i + 1][j + 1] = inside ? whole[(z * h + y + i) * w + x + j] : 0.0f;
            }
    };
    load(window[1], first - 1);
    load(window[2], first);
#pragma unroll UNROLL
    for (int i = 0; i < DEPTH; i++) {
        const int z = first + i;
        if (z >= d) break;
#pragma unroll
        for (int k = 0; k < 9; k++) {
            window[0][k / 3][k % 3] = window[1][k / 3][k % 3];
            window[1][k / 3][k % 3] = window[2][k / 3][k % 3];
        }
        load(window[2], z + 1);
        to[(z * h + y) * w + x] = point([&](int dz, int dy, int dx) { return window[dz + 1][dy + 1][dx + 1]; });
    }
}
