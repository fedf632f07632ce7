// presage: entry $entry$
// presage: tune TX = 32, 16, 64, 128
// presage: tune TY = 8, 4, 16, 32
// presage: tune THREADS = 256, 64, 128, 512
// presage: tune PAD = 0, 1
// presage: tune HALO = 1, 0
// presage: where TX * TY >= 128 and 4 * TX * TY >= THREADS and (HALO == 1 or PAD == 0 and THREADS == 128)
// presage: grid cdiv(w, TX), cdiv(h, TY), n
// presage: block THREADS
// presage: shared 4 * (TY + 2) * (TX + 2 + PAD)
//
// A block brings TX by TY points into shared memory, with those around them (HALO) or with copies of its own instead,
// and writes the 2 TX by 2 TY outputs row by row.

#define WIDE (TX + 2)
#define PITCH (WIDE + PAD)

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float tile[];
    const int left = blockIdx.x * TX - 1, top = blockIdx.y * TY - 1;
    const float *image = u + (size_t)blockIdx.z * h * w;
    for (int i = threadIdx.x; i < (TY + 2) * WIDE; i += THREADS) {
        int row = i / WIDE, col = i % WIDE;
        float *to = tile + row * PITCH + col;
        if (!HALO) row = min(max(row, 1), TY), col = min(max(col, 1), TX);
        *to = image[min(max(top + row, 0), h - 1) * w + min(max(left + col, 0), w - 1)];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 4 * TX * TY; i += THREADS) {
        const int p = i / (2 * TX), q = i % (2 * TX), a = p % 2, b = q % 2;
        const float *here = tile + (p / 2 + 1) * PITCH + q / 2 + 1;
        const auto v = [&](int dy, int dx) { return here[dy * PITCH + dx]; };
        const auto point = [&]() -> float {
            $upsample$
        };
        const int row = 2 * (top + 1) + p, col = 2 * (left + 1) + q;
        if (row < 2 * h && col < 2 * w) out[((size_t)blockIdx.z * 2 * h + row) * 2 * w + col] = point();
    }
}
