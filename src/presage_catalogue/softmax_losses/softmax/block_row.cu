// presage: problem softmax
// presage: entry softmax
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune VECTOR = 4, 2, 1
// presage: tune KEEP = 8, 0, 4
// presage: grid rows
// presage: block THREADS
//
// One block per row. KEEP vectors of the row stay in each thread's registers between finding the maximum, the sum
// and the result, so that a row of up to THREADS * VECTOR * KEEP elements is read once; what lies beyond is read
// again from cache. VECTOR floats are moved by one instruction where the rows' alignment allows it.

template <int N> struct Vector;
template <> struct Vector<1> { typedef float type; };
template <> struct Vector<2> { typedef float2 type; };
template <> struct Vector<4> { typedef float4 type; };

template <int N> union Pack {
    typename Vector<N>::type vector;
    float value[N];
};

struct Max {
    static __device__ float identity() { return -INFINITY; }
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    static __device__ float identity() { return 0.0f; }
    __device__ float operator()(float a, float b) const { return a + b; }
};

// Every thread gets the combination of all threads' values.
template <class Combine> __device__ float block_reduce(float value, Combine combine) {
    __shared__ float of_warp[32];
    for (int offset = 16; offset > 0; offset /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    if (THREADS == 32) return value;
    const int lane = threadIdx.x % 32;
    __syncthreads(); // the last reduction's readers are done with of_warp
    if (lane == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = lane < THREADS / 32 ? of_warp[lane] : Combine::identity();
    for (int offset = 16; offset > 0; offset /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

template <int N> __device__ void softmax_row(const float *in, float *out, int cols) {
    const int vectors = cols / N;
    const typename Vector<N>::type *source = reinterpret_cast<const typename Vector<N>::type *>(in);
    typename Vector<N>::type *target = reinterpret_cast<typename Vector<N>::type *>(out);
    Pack<N> kept[KEEP > 0 ? KEEP : 1];

    float max = -INFINITY;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) {
            kept[k].vector = source[v];
#pragma unroll
            for (int i = 0; i < N; i++) max = fmaxf(max, kept[k].value[i]);
        }
    }
    for (int v = threadIdx.x + KEEP * THREADS; v < vectors; v += THREADS) {
        Pack<N> pack;
        pack.vector = source[v];
#pragma unroll
        for (int i = 0; i < N; i++) max = fmaxf(max, pack.value[i]);
    }
    max = block_reduce(max, Max());

    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        if (threadIdx.x + k * THREADS < vectors) {
#pragma unroll
            for (int i = 0; i < N; i++) {
                kept[k].value[i] = expf(kept[k].value[i] - max);
                sum += kept[k].value[i];
            }
        }
    }
    for (int v = threadIdx.x + KEEP * THREADS; v < vectors; v += THREADS) {
        Pack<N> pack;
        pack.vector = source[v];
#pragma unroll
        for (int i = 0; i < N; i++) sum += expf(pack.value[i] - max);
    }
    const float scale = 1.0f / block_reduce(sum, Sum());

#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < vectors) {
#pragma unroll
            for (int i = 0; i < N; i++) kept[k].value[i] *= scale;
            target[v] = kept[k].vector;
        }
    }
    for (int v = threadIdx.x + KEEP * THREADS; v < vectors; v += THREADS) {
        Pack<N> pack;
        pack.vector = source[v];
#pragma unroll
        for (int i = 0; i < N; i++) pack.value[i] = expf(pack.value[i] - max) * scale;
        target[v] = pack.vector;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    const size_t start = static_cast<size_t>(blockIdx.x) * cols;
    if (cols % VECTOR == 0)
        softmax_row<VECTOR>(x + start, y + start, cols);
    else
        softmax_row<1>(x + start, y + start, cols);
}
