// presage: problem layernorm
// presage: entry layernorm
// presage: tune METHOD = 0, 1, 2
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune VECTOR = 4, 1
// presage: tune KEEP = 8, 0, 2
// presage: grid rows
// presage: block THREADS
//
// One block per row, KEEP vectors of which stay in each thread's registers; what lies beyond is read again from cache.
// METHOD 0 finds the mean and then the sum of squared distances from it; 1 finds both at once from sums relative to the
// row's first element; 2 updates a running mean and merges those of the threads (Welford, Chan).

template <int N> struct alignas(4 * N) Pack { float at[N]; };

// What is known of some elements: how many, their mean, and the sum of squared distances from it.
struct Moments {
    float count, mean, squares;
};

__device__ void include(Moments &m, float v) {
    m.count += 1.0f;
    const float delta = v - m.mean;
    m.mean += __fdividef(delta, m.count);
    m.squares += delta * (v - m.mean);
}

__device__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float share = b.count / count, delta = b.mean - a.mean;
    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

__device__ Moments from_lane(Moments m, int offset) {
    return {__shfl_xor_sync(0xffffffffu, m.count, offset), __shfl_xor_sync(0xffffffffu, m.mean, offset),
            __shfl_xor_sync(0xffffffffu, m.squares, offset)};
}

__device__ Moments added(Moments a, Moments b) {
    return {a.count + b.count, a.mean + b.mean, a.squares + b.squares};
}

// With METHOD 2 the moments merge; otherwise the three numbers are plain sums.
__device__ Moments block_total(Moments m) {
    __shared__ Moments of_warp[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2)
        m = METHOD == 2 ? merged(m, from_lane(m, offset)) : added(m, from_lane(m, offset));
    __syncthreads(); // an earlier call's readers are done with of_warp
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m;
    __syncthreads();
    m = of_warp[0];
    for (int w = 1; w < THREADS / 32; w++) m = METHOD == 2 ? merged(m, of_warp[w]) : added(m, of_warp[w]);
    return m;
}

// One pass over the row for METHOD 1 or 2; for METHOD 0 the first (mean = 0) or the second (mean known).
template <int N> __device__ void include_pack(Moments &m, Pack<N> pack, float origin) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (METHOD == 2) {
            include(m, pack.at[i]);
        } else {
            const float v = pack.at[i] - origin;
            m.mean += v;
            m.squares += v * v;
        }
    }
}

template <int N> __device__ Pack<N> normalised(Pack<N> pack, Pack<N> weight, Pack<N> bias, float mean, float scale) {
#pragma unroll
    for (int i = 0; i < N; i++) pack.at[i] = (pack.at[i] - mean) * scale * weight.at[i] + bias.at[i];
    return pack;
}

template <int N>
__device__ void layernorm_row(const float *in, const float *weight, const float *bias, float *out, int cols) {
    const int vectors = cols / N, rest = threadIdx.x + KEEP * THREADS;
    const Pack<N> *from = (const Pack<N> *)in, *weights = (const Pack<N> *)weight, *biases = (const Pack<N> *)bias;
    Pack<N> *to = (Pack<N> *)out;
    Pack<N> kept[KEEP > 0 ? KEEP : 1];
    const float origin = METHOD == 1 ? in[0] : 0.0f;

    Moments m = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) include_pack(m, kept[k] = from[v], origin);
    }
    for (int v = rest; v < vectors; v += THREADS) include_pack(m, from[v], origin);
    m = block_total(m);
    float mean = METHOD == 2 ? m.mean : m.mean / cols, squares = m.squares;
    if (METHOD == 1) squares -= m.mean * mean;
    if (METHOD == 0) {
        m = {0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (threadIdx.x + k * THREADS < vectors) include_pack(m, kept[k], mean);
        for (int v = rest; v < vectors; v += THREADS) include_pack(m, from[v], mean);
        squares = block_total(m).squares;
    }
    mean += origin;
    const float scale = rsqrtf(fmaxf(squares, 0.0f) / cols + 1e-5f);

#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) to[v] = normalised(kept[k], weights[v], biases[v], mean, scale);
    }
    for (int v = rest; v < vectors; v += THREADS) to[v] = normalised(from[v], weights[v], biases[v], mean, scale);
}

extern "C" __global__ void __launch_bounds__(THREADS)
layernorm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
          float *__restrict__ y, int rows, int cols) {
    const size_t start = (size_t)blockIdx.x * cols;
    if (cols % VECTOR == 0) layernorm_row<VECTOR>(x + start, weight, bias, y + start, cols);
    else layernorm_row<1>(x + start, weight, bias, y + start, cols);
}
