// presage: entry $entry$
// presage: tune BX = 32, 16, 64, 128
// presage: tune BY = 4, 1, 2, 8
// presage: tune BZ = 1, 2, 4
// presage: tune ITEMS = 1, 2, 4
// presage: tune EDGE = 0, 1, 2
// presage: where BX * BY * BZ >= 64 and BX * BY * BZ <= 512 and (EDGE < 2 or ITEMS == 1 and BZ == 1)
// presage: grid cdiv(w, BX), cdiv(h, BY), n * cdiv(d, BZ * ITEMS)
// presage: block BX, BY, BZ
//
// A thread computes ITEMS points, BZ planes apart, straight from memory, with the reuse left to the caches. EDGE 0
// looks at every neighbour's place, 1 only at those of points at an edge, 2 at places in the flattened volume.

extern "C" __global__ void __launch_bounds__(BX *BY *BZ) $entry$($arguments$) {
    const int slabs = (d + BZ * ITEMS - 1) / (BZ * ITEMS), image = blockIdx.z / slabs;
    const float *whole = u + (size_t)image * d * h * w;
    const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
    if (x >= w || y >= h) return;
    const auto point = [&](const auto &v) -> float {
        $volume$
    };
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int z = (blockIdx.z % slabs * ITEMS + i) * BZ + threadIdx.z;
        if (z >= d) break;
        const int at = (z * h + y) * w + x;
        float *to = out + (size_t)image * d * h * w + at;
        const auto flat = [&](int dz, int dy, int dx) {
            const int from = at + (dz * h + dy) * w + dx;
            return from >= 0 && from < d * h * w ? whole[from] : 0.0f;
        };
        const auto checked = [&](int dz, int dy, int dx) {
            const bool inside = z + dz >= 0 && z + dz < d && y + dy >= 0 && y + dy < h && x + dx >= 0 && x + dx < w;
            return inside ? whole[at + (dz * h + dy) * w + dx] : 0.0f;
        };
        const bool inner = z > 0 && z < d - 1 && y > 0 && y < h - 1 && x > 0 && x < w - 1;
        if (EDGE == 2) *to = point(flat);
        else if (EDGE == 1 && inner) *to = point([&](int dz, int dy, int dx) { return whole[at + (dz * h + dy) * w + dx]; });
        else *to = point(checked);
    }
}
