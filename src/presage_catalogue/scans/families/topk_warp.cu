// presage: entry largest
// presage: tune LANES = 32, 16, 8
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune VECTOR = 4, 1
// presage: tune DEPTH = 8, 2, 4
// presage: where DEPTH == 8 or (LANES == 32 and VECTOR == 4)
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row. Each keeps the DEPTH largest elements it has seen in registers, in order; then
// the largest head of all lists is taken K times.

#define K $topk$
template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ void take(float (&list)[DEPTH], float value) {
    if (value <= list[DEPTH - 1]) return;
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        const float higher = fmaxf(list[k], value);
        value = fminf(list[k], value);
        list[k] = higher;
    }
}

template <int N> __device__ void read_row(const float *row, int cols, int lane, float (&list)[DEPTH]) {
    const Pack<N> *from = (const Pack<N> *)row;
    for (int v = lane; v < cols / N; v += LANES) {
        const Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) take(list, pack.at[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) largest($parameters$) {
    const int r = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    float list[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; k++) list[k] = -INFINITY;
    const float *row = x + (size_t)r * cols;
    if (r < rows) {
        if (cols % VECTOR == 0) read_row<VECTOR>(row, cols, lane, list);
        else read_row<1>(row, cols, lane, list);
    }
    for (int k = 0; k < K; k++) {
        float top = list[0];
        int owner = lane;
        for (int offset = LANES / 2; offset > 0; offset /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, top, offset);
            const int its = __shfl_xor_sync(0xffffffffu, owner, offset);
            if (other > top || (other == top && its < owner)) top = other, owner = its;
        }
        if (lane == owner) {
            if (r < rows) y[(size_t)r * K + k] = top;
#pragma unroll
            for (int i = 1; i < DEPTH; i++) list[i - 1] = list[i];
            list[DEPTH - 1] = -INFINITY;
        }
    }
}
