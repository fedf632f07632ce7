// presage: entry $entry$
// presage: tune BX = 32, 8, 64, 128, 256
// presage: tune BY = 8, 1, 2, 4
// presage: tune OWN = 1, 2, 4, 8
// presage: tune STORE = 0, 1, 2
// presage: tune EDGE = 0, 1
// presage: where BX * BY >= 64 and (BX * BY <= 512 or BX * BY == 2048 and STORE == 0) and (STORE < 1 or OWN > 1) and (EDGE == 0 or OWN == 2)
// presage: grid cdiv(2 * w, BX * OWN), cdiv(2 * h, BY * (1 if OWN == 1 else 2)), n
// presage: block BX, BY
//
// A thread computes one output (OWN 1), or two rows of OWN neighbouring outputs from OWN / 2 points. It stores them one
// by one (STORE 0), or in pairs, with the hint that they are not read again soon (2) or without (1). EDGE 0 takes the
// nearest point for one outside, 1 clamps places in the flattened image.

extern "C" __global__ void __launch_bounds__(BX *BY) $entry$($arguments$) {
    const int high = OWN == 1 ? 1 : 2;
    const int q = (blockIdx.x * BX + threadIdx.x) * OWN, p = (blockIdx.y * BY + threadIdx.y) * high;
    const float *image = u + (size_t)blockIdx.z * h * w;
    if (p >= 2 * h) return;
    const auto point = [&](int p, int q) -> float {
        const int y = p / 2, x = q / 2, a = p % 2, b = q % 2;
        const auto v = [&](int dy, int dx) {
            if (EDGE) return image[min(max((y + dy) * w + x + dx, 0), h * w - 1)];
            return image[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
        };
        $upsample$
    };
#pragma unroll
    for (int i = 0; i < high; i++) {
        float *to = out + ((size_t)blockIdx.z * 2 * h + p + i) * 2 * w + q;
#pragma unroll
        for (int j = 0; j < OWN; j += STORE ? 2 : 1) {
            if (q + j >= 2 * w) break;
            if (STORE == 0) {
                to[j] = point(p + i, q + j);
                continue;
            }
            const float2 pair = make_float2(point(p + i, q + j), point(p + i, q + j + 1));
            if (STORE == 2) __stcs((float2 *)(to + j), pair);
            else *(float2 *)(to + j) = pair;
        }
    }
}
