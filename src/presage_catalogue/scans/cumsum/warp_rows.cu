// presage: problem cumsum
// presage: entry cumsum
// presage: tune THREADS = 128, 32, 256, 1024
// presage: tune VECTOR = 4, 2, 1
// presage: tune UNROLL = 1, 2, 4
// presage: grid cdiv(rows * 32, THREADS)
// presage: block THREADS
//
// One warp per row: right for many short rows, hopeless for few long ones. UNROLL steps are loaded before the first is
// scanned, since a step has to wait for the sum of the one before.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ void scan_row(const float *in, float *out, int cols, int lane) {
    const Pack<N> *from = (const Pack<N> *)in;
    const int vectors = cols / N;
    float before = 0.0f;
    for (int first = 0; first < vectors; first += UNROLL * 32) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int v = first + u * 32 + lane;
            if (v < vectors) pack[u] = from[v];
            else
#pragma unroll
                for (int i = 0; i < N; i++) pack[u].at[i] = 0.0f;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
#pragma unroll
            for (int i = 1; i < N; i++) pack[u].at[i] += pack[u].at[i - 1];
            float running = pack[u].at[N - 1];
            for (int offset = 1; offset < 32; offset *= 2) {
                const float other = __shfl_up_sync(0xffffffffu, running, offset);
                if (lane >= offset) running += other;
            }
            const float exclusive = __shfl_up_sync(0xffffffffu, running, 1);
            const float offset = before + (lane > 0 ? exclusive : 0.0f);
#pragma unroll
            for (int i = 0; i < N; i++) pack[u].at[i] += offset;
            before += __shfl_sync(0xffffffffu, running, 31);
            const int v = first + u * 32 + lane;
            if (v < vectors) ((Pack<N> *)out)[v] = pack[u];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
cumsum(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return; // a whole warp at a time
    const size_t start = (size_t)row * cols;
    if (cols % VECTOR == 0) scan_row<VECTOR>(x + start, y + start, cols, lane);
    else scan_row<1>(x + start, y + start, cols, lane);
}
