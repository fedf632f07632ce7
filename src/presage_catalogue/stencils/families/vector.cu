// presage: entry $entry$
// presage: tune WIDE = 4, 2
// presage: tune ROWS = 1, 2, 4
// presage: tune BX = 32, 64, 128
// presage: tune BY = 4, 1, 2, 8
// presage: tune STORE = 0, 1, 2
// presage: tune TAIL = 1, 0
// presage: where BX * BY >= 64 and BX * BY <= 512 and (TAIL == 1 or STORE == 1 and ROWS == 1)
// presage: grid max(1, cdiv(w, BX * WIDE) if TAIL else w // WIDE // BX), cdiv(h, BY * ROWS), n
// presage: block BX, BY
//
// A thread computes ROWS rows of WIDE neighbouring points. Where the rows' length allows, it reads each row around them
// as a vector, and the points beside it one by one. It stores points one by one (STORE 0) or as a vector, with the hint
// that they are not read again soon (2) or without (1). TAIL also launches a block for points that do not fill one.

#define RY $ry$
#define RX $rx$
typedef $type$ T;
#if WIDE == 4
typedef $vector4$ Vector;
#else
typedef $vector2$ Vector;
#endif

__device__ T fetch(const T *plane, int y, int x, int h, int w) {
    $fetch$
}

extern "C" __global__ void __launch_bounds__(BX *BY) $entry$($arguments$) {
    const int left = (blockIdx.x * BX + threadIdx.x) * WIDE, top = (blockIdx.y * BY + threadIdx.y) * ROWS;
    if (left >= w || top >= h) return;
    const T *plane = u + (size_t)blockIdx.z * h * w;
    const bool aligned = w % WIDE == 0;
    $prepare$
    const auto point = [&](const auto &v, int y, int x, size_t at) -> T {
        $formula$
    };
    T window[ROWS + 2 * RY][WIDE + 2 * RX];
#pragma unroll
    for (int i = 0; i < ROWS + 2 * RY; i++) {
        const int row = top + i - RY;
        if (aligned && row >= 0 && row < h) {
            const Vector own = *(const Vector *)(plane + row * w + left);
#pragma unroll
            for (int j = 0; j < WIDE; j++) window[i][RX + j] = ((const T *)&own)[j];
        } else {
#pragma unroll
            for (int j = 0; j < WIDE; j++) window[i][RX + j] = fetch(plane, row, left + j, h, w);
        }
#pragma unroll
        for (int j = 0; j < RX; j++) {
            window[i][j] = fetch(plane, row, left + j - RX, h, w);
            window[i][RX + WIDE + j] = fetch(plane, row, left + WIDE + j, h, w);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int py = top + i;
        if (py >= h) break;
        Vector all;
        const size_t first = ((size_t)blockIdx.z * h + py) * w + left;
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const int px = left + j;
            const size_t at = first + j;
            if (px >= w) break;
            const T value = point([&](int dy, int dx) { return window[RY + i + dy][RX + j + dx]; }, py, px, at);
            if (STORE && aligned) ((T *)&all)[j] = value;
            else out[at] = value;
        }
        if (STORE == 1 && aligned) *(Vector *)(out + first) = all;
        if (STORE == 2 && aligned) __stcs((Vector *)(out + first), all);
    }
}
