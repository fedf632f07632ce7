// presage: entry $entry$
// presage: tune ROWS = 8, 4, 16, 32, 64
// presage: tune COLS = 1, 2, 4
// presage: tune THREADS = 128, 32, 64, 256
// presage: tune LANES = 0, 1
// presage: where ROWS * COLS <= 128
// presage: grid cdiv(w, THREADS * COLS), cdiv(h, ROWS), n
// presage: block THREADS
//
// A thread goes down ROWS rows of COLS columns. The rows that its points need stay in registers and move up by one for
// each step. The columns beside its own come from memory (LANES 0) or from the neighbouring lanes of the warp (1).

#define RY $ry$
#define RX $rx$
typedef $type$ T;

__device__ T fetch(const T *plane, int y, int x, int h, int w) {
    $fetch$
}

// The k-th element to the right of a lane's first, which a lane further on may hold; `own` are this lane's.
__device__ T beyond(const T (&own)[COLS], int k) {
    const int lanes = k >= 0 ? k / COLS : -((COLS - 1 - k) / COLS);
    const int lane = threadIdx.x % 32;
    return (T)__shfl_sync(0xffffffff, own[k - lanes * COLS], min(max(lane + lanes, 0), 31));
}

__device__ void load(T (&row)[COLS + 2 * RX], const T *plane, int y, int x, int h, int w) {
    if (!LANES) {
#pragma unroll
        for (int j = 0; j < COLS + 2 * RX; j++) row[j] = fetch(plane, y, x + j - RX, h, w);
        return;
    }
    T own[COLS];
#pragma unroll
    for (int j = 0; j < COLS; j++) own[j] = row[RX + j] = fetch(plane, y, x + j, h, w);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 1; j <= RX; j++) {
        const T before = beyond(own, -j), after = beyond(own, COLS - 1 + j);
        row[RX - j] = lane * COLS >= j ? before : fetch(plane, y, x - j, h, w);
        row[RX + COLS - 1 + j] = (31 - lane) * COLS >= j ? after : fetch(plane, y, x + COLS - 1 + j, h, w);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int left = (blockIdx.x * THREADS + threadIdx.x) * COLS, top = blockIdx.y * ROWS;
    const T *plane = u + (size_t)blockIdx.z * h * w;
    $prepare$
    const auto point = [&](const auto &v, int y, int x, size_t at) -> T {
        $formula$
    };
    T window[2 * RY + 1][COLS + 2 * RX];
#pragma unroll
    for (int i = 0; i < 2 * RY; i++) load(window[i + 1], plane, top + i - RY, left, h, w);
#pragma unroll 4
    for (int i = 0; i < ROWS; i++) {
        const int py = top + i;
        if (py >= h) break;
#pragma unroll
        for (int k = 0; k < 2 * RY; k++)
#pragma unroll
            for (int j = 0; j < COLS + 2 * RX; j++) window[k][j] = window[k + 1][j];
        load(window[2 * RY], plane, py + RY, left, h, w);
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            const int px = left + j;
            const size_t at = ((size_t)blockIdx.z * h + py) * w + px;
            if (px < w) out[at] = point([&](int dy, int dx) { return window[RY + dy][RX + j + dx]; }, py, px, at);
        }
    }
}
