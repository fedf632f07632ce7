// presage: entry $entry$
// presage: tune TX = 32, 64, 128
// presage: tune TY = 8, 4, 16, 32
// presage: tune DEPTH = 16, 4, 8, 64
// presage: tune PAD = 0, 1
// presage: tune EDGE = 1, 0
// presage: where TX * TY >= 128 and TX * TY <= 2048 and (TX * TY <= 1024 or PAD == 0 and EDGE == 1)
// presage: where EDGE == 1 or PAD == 0 and DEPTH == 16
// presage: grid cdiv(w, TX), cdiv(h, TY), n * cdiv(d, DEPTH)
// presage: block TX, TY
// presage: shared 12 * (TY + 2) * (TX + 2 + PAD)
//
// A block goes through DEPTH planes of TX by TY points. Three planes lie in shared memory, and each step brings the next
// in place of the oldest, with one more point on each side (EDGE 1) or with zeros there (0).

#define WIDE (TX + 2)
#define PITCH (WIDE + PAD)

extern "C" __global__ void __launch_bounds__(TX *TY) $entry$($arguments$) {
    extern __shared__ float planes[];
    const int slabs = (d + DEPTH - 1) / DEPTH, image = blockIdx.z / slabs, first = blockIdx.z % slabs * DEPTH;
    const int left = blockIdx.x * TX - 1, top = blockIdx.y * TY - 1;
    const int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y;
    const float *whole = u + (size_t)image * d * h * w;
    const auto point = [&](const auto &v) -> float {
        $volume$
    };
    const auto load = [&](int z) {
        float *to = planes + (z + 3) % 3 * (TY + 2) * PITCH;
        for (int i = threadIdx.y * TX + threadIdx.x; i < (TY + 2) * WIDE; i += TX * TY) {
            const int row = i / WIDE, col = i % WIDE, y = top + row, x = left + col;
            const bool own = EDGE || (row > 0 && row <= TY && col > 0 && col <= TX);
            const bool inside = own && z >= 0 && z < d && y >= 0 && y < h && x >= 0 && x < w;
            to[row * PITCH + col] = inside ? whole[(z * h + y) * w + x] : 0.0f;
        }
    };
    load(first - 1);
    load(first);
    for (int z = first; z < min(d, first + DEPTH); z++) {
        load(z + 1);
        __syncthreads();
        const auto v = [&](int dz, int dy, int dx) {
            return planes[((z + dz + 3) % 3 * (TY + 2) + threadIdx.y + 1 + dy) * PITCH + threadIdx.x + 1 + dx];
        };
        if (x < w && y < h) out[((size_t)image * d + z) * h * w + y * w + x] = point(v);
        __syncthreads();
    }
}
