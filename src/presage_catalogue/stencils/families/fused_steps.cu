// presage: entry $entry$
// presage: tune TX = 32, 64, 128
// presage: tune TY = 16, 8, 32
// presage: tune THREADS = 256, 128, 512
// presage: tune PAD = 0, 1
// presage: tune HALO = 2, 1
// presage: where HALO == 2 or THREADS == 128 and PAD == 0
// presage: grid cdiv(w, TX), cdiv(h, TY), n
// presage: block THREADS
// presage: shared 8 * (TY + 4) * (TX + 4 + PAD)
//
// Both steps in one launch: a block brings its points and HALO more on each side into shared memory, makes the first
// step there, also for one point more on each side, and the second from its results.

#define WIDE (TX + 4)
#define TALL (TY + 4)
#define PITCH (WIDE + PAD)
typedef $type$ T;

__device__ T fetch(const T *plane, int y, int x, int h, int w) {
    $fetch$
}

template <class V> __device__ T step(const V &v) {
    $step$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ T before[];
    T *after = before + TALL * PITCH;
    const int left = blockIdx.x * TX - 2, top = blockIdx.y * TY - 2;
    const T *plane = u + (size_t)blockIdx.z * h * w;
    for (int i = threadIdx.x; i < TALL * WIDE; i += THREADS) {
        const int row = i / WIDE, col = i % WIDE;
        const bool near = row >= 2 - HALO && row < TALL - 2 + HALO && col >= 2 - HALO && col < WIDE - 2 + HALO;
        before[row * PITCH + col] = near ? fetch(plane, top + row, left + col, h, w) : 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < (TALL - 2) * (WIDE - 2); i += THREADS) {
        const int row = i / (WIDE - 2) + 1, col = i % (WIDE - 2) + 1, at = row * PITCH + col;
        const bool inside = top + row >= 0 && top + row < h && left + col >= 0 && left + col < w;
        after[at] = inside ? step([&](int dy, int dx) { return before[at + dy * PITCH + dx]; }) : 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TY * TX; i += THREADS) {
        const int row = i / TX + 2, col = i % TX + 2, at = row * PITCH + col;
        if (top + row < h && left + col < w)
            out[((size_t)blockIdx.z * h + top + row) * w + left + col] =
                step([&](int dy, int dx) { return after[at + dy * PITCH + dx]; });
    }
}
