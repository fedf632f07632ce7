// presage: entry $entry$
// presage: tune TX = 32, 16, 64, 128
// presage: tune TY = 16, 8, 32, 64
// presage: tune ROWS = 4, 1, 2, 8
// presage: tune BLOCKED = 0, 1
// presage: tune PAD = 0, 1
// presage: tune CORNERS = 1, 0
// presage: where TX * TY // ROWS >= 64 and TX * TY // ROWS <= 2048 and (ROWS > 1 or BLOCKED == 0)
// presage: where TX * TY // ROWS <= 1024 or TX == 64 and PAD == 0 and CORNERS == 1
// presage: where CORNERS == 1 or PAD == 0 and BLOCKED == 0 and TX == 32
// presage: grid cdiv(w, TX), cdiv(h, TY), n
// presage: block TX, TY // ROWS
// presage: shared $bytes$ * (TY + 2 * $ry$) * (TX + 2 * $rx$ + PAD)
//
// A block brings TX by TY points and those around them into shared memory, with or without the CORNERS, in rows that are
// PAD longer than they need be. A thread computes ROWS points below each other, next to each other (BLOCKED) or far apart.

#define RY $ry$
#define RX $rx$
#define PITCH (TX + 2 * RX + PAD)
typedef $type$ T;

__device__ T fetch(const T *plane, int y, int x, int h, int w) {
    $fetch$
}

extern "C" __global__ void __launch_bounds__(TX *TY / ROWS) $entry$($arguments$) {
    extern __shared__ T tile[];
    const int left = blockIdx.x * TX - RX, top = blockIdx.y * TY - RY;
    const T *plane = u + (size_t)blockIdx.z * h * w;
    const int threads = TX * TY / ROWS, wide = TX + 2 * RX;
    for (int i = threadIdx.y * TX + threadIdx.x; i < (TY + 2 * RY) * wide; i += threads) {
        const int row = i / wide, col = i % wide;
        const bool corner = (row < RY || row >= TY + RY) && (col < RX || col >= TX + RX);
        tile[row * PITCH + col] = CORNERS || !corner ? fetch(plane, top + row, left + col, h, w) : 0;
    }
    __syncthreads();
    $prepare$
    const auto point = [&](const auto &v, int y, int x, size_t at) -> T {
        $formula$
    };
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int row = BLOCKED ? threadIdx.y * ROWS + i : threadIdx.y + i * (TY / ROWS);
        const int py = top + RY + row, px = left + RX + threadIdx.x;
        if (py >= h || px >= w) break;
        const T *here = tile + (row + RY) * PITCH + threadIdx.x + RX;
        const size_t at = ((size_t)blockIdx.z * h + py) * w + px;
        out[at] = point([&](int dy, int dx) { return here[dy * PITCH + dx]; }, py, px, at);
    }
}
