// presage: problem cross_entropy
// presage: entry cross_entropy
// presage: tune METHOD = 0, 1, 2
// presage: tune THREADS = 256, 64, 512, 1024
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: tune NATIVE = 0, 1
// presage: grid rows
// presage: block THREADS
//
// One block per row. METHOD 0 reads the row for its maximum and again, from cache, for the sum; 1 keeps a running
// maximum and rescales the sum whenever an element exceeds it; 2 does that once per UNROLL * VECTOR elements. NATIVE
// takes the hardware's exponential.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float exp_of(float v) { return NATIVE ? __expf(v) : expf(v); }

// A sum of exponentials relative to a maximum; the maximum is finite once anything was added.
struct Total {
    float largest, sum;
};

__device__ Total joined(Total a, Total b) {
    const float largest = fmaxf(a.largest, b.largest);
    if (largest == -INFINITY) return a;
    return {largest, a.sum * exp_of(a.largest - largest) + b.sum * exp_of(b.largest - largest)};
}

__device__ Total block_total(Total total) {
    __shared__ Total of_warp[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        Total other;
        other.largest = __shfl_xor_sync(0xffffffffu, total.largest, offset);
        other.sum = __shfl_xor_sync(0xffffffffu, total.sum, offset);
        total = joined(total, other);
    }
    __syncthreads(); // an earlier call's readers are done with of_warp
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = total;
    __syncthreads();
    total = of_warp[0];
    for (int w = 1; w < THREADS / 32; w++) total = joined(total, of_warp[w]);
    return total;
}

template <int N> __device__ Total row_total(const float *row, int cols) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N;
    Total total = {-INFINITY, 0.0f};
    for (int first = threadIdx.x; first < vectors; first += UNROLL * THREADS) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * THREADS < vectors) pack[u] = from[first + u * THREADS];
            else
#pragma unroll
                for (int i = 0; i < N; i++) pack[u].at[i] = -INFINITY;
        }
        if (METHOD == 1) {
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int i = 0; i < N; i++) {
                    const float v = pack[u].at[i];
                    if (v > total.largest) {
                        total.sum = total.sum * exp_of(total.largest - v) + 1.0f;
                        total.largest = v;
                    } else {
                        total.sum += exp_of(v - total.largest);
                    }
                }
            continue;
        }
        float largest = total.largest;
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) largest = fmaxf(largest, pack[u].at[i]);
        if (METHOD == 2) {
            total.sum *= exp_of(total.largest - largest);
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int i = 0; i < N; i++) total.sum += exp_of(pack[u].at[i] - largest);
        }
        total.largest = largest;
    }
    total = block_total(total);
    if (METHOD != 0) return total;

    total.sum = 0.0f;
#pragma unroll UNROLL
    for (int v = threadIdx.x; v < vectors; v += THREADS) {
        const Pack<N> pack = from[v];
#pragma unroll
        for (int i = 0; i < N; i++) total.sum += exp_of(pack.at[i] - total.largest);
    }
    return block_total(total);
}

extern "C" __global__ void __launch_bounds__(THREADS)
cross_entropy(const float *__restrict__ logits, const long long *__restrict__ targets, float *__restrict__ loss,
              int rows, int cols) {
    const float *row = logits + (size_t)blockIdx.x * cols;
    const Total total = cols % VECTOR == 0 ? row_total<VECTOR>(row, cols) : row_total<1>(row, cols);
    if (threadIdx.x == 0) loss[blockIdx.x] = total.largest + logf(total.sum) - row[targets[blockIdx.x]];
}
