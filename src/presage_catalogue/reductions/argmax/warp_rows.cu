// presage: problem argmax
// presage: entry argmax
// presage: tune LANES = 32, 16, 8
// presage: tune THREADS = 256, 64, 512
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1, 8
// presage: grid cdiv(rows * LANES, THREADS)
// presage: block THREADS
//
// LANES threads of a warp share a row, so that no two warps ever wait for each other.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ void best_of(float &value, int &place, float other, int other_place) {
    if (other > value || (other == value && other_place < place)) value = other, place = other_place;
}

template <int N> __device__ void scan(const float *row, int cols, int lane, float &value, int &place) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N;
    for (int first = lane; first < vectors; first += UNROLL * LANES) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (first + u * LANES < vectors) pack[u] = from[first + u * LANES];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int v = first + u * LANES;
            if (v >= vectors) break;
#pragma unroll
            for (int i = 0; i < N; i++) best_of(value, place, pack[u].at[i], v * N + i);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
argmax(const float *__restrict__ x, long long *__restrict__ y, int rows, int cols) {
    const int row = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    const float *in = x + (size_t)row * cols;
    float value = -INFINITY;
    int place = cols;
    if (row < rows && cols % VECTOR == 0) scan<VECTOR>(in, cols, lane, value, place);
    if (row < rows && cols % VECTOR != 0) scan<1>(in, cols, lane, value, place);
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        best_of(value, place, other, __shfl_xor_sync(0xffffffffu, place, offset));
    }
    if (row < rows && lane == 0) y[row] = place;
}
