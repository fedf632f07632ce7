// presage: problem softmax
// presage: entry totals
// presage: tune PARTS = 4, 2, 8, 32
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry normalise
// presage: grid rows * PARTS
// presage: block THREADS
// presage: scratch partial = 8 * rows * PARTS
//
// PARTS blocks share a row. The first launch leaves each part's maximum and its sum of exponentials relative to it; the
// second combines them and writes the result, reading x a second time, from cache where it fits.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float2 joined(float2 a, float2 b) {
    const float largest = fmaxf(a.x, b.x);
    return make_float2(largest, a.y * expf(a.x - largest) + b.y * expf(b.x - largest));
}

struct Range {
    int first, end;
};

__device__ Range share_of(int vectors, int part) {
    const int share = (vectors + PARTS - 1) / PARTS;
    return {part * share + (int)threadIdx.x, min(vectors, (part + 1) * share)};
}

template <int N> __device__ float2 thread_total(const float *row, int cols, int part) {
    const Pack<N> *from = (const Pack<N> *)row;
    const Range range = share_of(cols / N, part);
    float2 total = make_float2(-3.0e38f, 0.0f); // finite, so that empty parts combine to finite numbers
    for (int v = range.first; v < range.end; v += THREADS) {
        const Pack<N> pack = from[v];
        float largest = total.x;
#pragma unroll
        for (int i = 0; i < N; i++) largest = fmaxf(largest, pack.at[i]);
        total.y *= expf(total.x - largest);
        total.x = largest;
#pragma unroll
        for (int i = 0; i < N; i++) total.y += expf(pack.at[i] - largest);
    }
    return total;
}

template <int N> __device__ void write(const float *row, float *out, int cols, int part, float2 total) {
    const Pack<N> *from = (const Pack<N> *)row;
    const Range range = share_of(cols / N, part);
    const float scale = 1.0f / total.y;
    for (int v = range.first; v < range.end; v += THREADS) {
        Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) pack.at[i] = expf(pack.at[i] - total.x) * scale;
        ((Pack<N> *)out)[v] = pack;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
totals(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, float2 *__restrict__ partial) {
    __shared__ float2 of_warp[THREADS / 32];
    const int part = blockIdx.x % PARTS;
    const float *row = x + (size_t)(blockIdx.x / PARTS) * cols;
    float2 total = cols % VECTOR == 0 ? thread_total<VECTOR>(row, cols, part) : thread_total<1>(row, cols, part);
    for (int offset = 16; offset > 0; offset /= 2) {
        const float largest = __shfl_xor_sync(0xffffffffu, total.x, offset);
        total = joined(total, make_float2(largest, __shfl_xor_sync(0xffffffffu, total.y, offset)));
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; w++) total = joined(total, of_warp[w]);
        partial[blockIdx.x] = total;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
normalise(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, const float2 *__restrict__ partial) {
    const int r = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const size_t start = (size_t)r * cols;
    float2 total = partial[r * PARTS];
    for (int p = 1; p < PARTS; p++) total = joined(total, partial[r * PARTS + p]);
    if (cols % VECTOR == 0) write<VECTOR>(x + start, y + start, cols, part, total);
    else write<1>(x + start, y + start, cols, part, total);
}
