// presage: problem argmax
// presage: entry argmax
// presage: tune METHOD = 0, 1, 2
// presage: tune THREADS = 256, 64, 512, 1024
// presage: tune VECTOR = 4, 2, 1
// presage: tune UNROLL = 4, 1
// presage: grid rows
// presage: block THREADS
//
// One block per row. METHOD 0 carries pairs of value and place; 1 finds the maximum first and then, reading the row
// again from cache, its first place; 2 packs value and place into one 64-bit number whose maximum is the answer.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

typedef unsigned long long Key;

// Larger for a larger value and, among equal values, for an earlier place; adding zero makes -0 equal to 0.
__device__ Key key_of(float value, int place) {
    const int bits = __float_as_int(value + 0.0f);
    const unsigned ordered = bits < 0 ? ~bits : bits | 0x80000000u;
    return ((Key)ordered << 32) | (unsigned)~place;
}

__device__ void best_of(float &value, int &place, float other, int other_place) {
    if (other > value || (other == value && other_place < place)) value = other, place = other_place;
}

// All threads of the block end with the best pair, or with the largest value where places do not matter.
__device__ void block_best(float &value, int &place) {
    __shared__ float values[32];
    __shared__ int places[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        best_of(value, place, other, __shfl_xor_sync(0xffffffffu, place, offset));
    }
    const int lane = threadIdx.x % 32;
    if (lane == 0) values[threadIdx.x / 32] = value, places[threadIdx.x / 32] = place;
    __syncthreads();
    value = values[lane % (THREADS / 32)];
    place = places[lane % (THREADS / 32)];
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        best_of(value, place, other, __shfl_xor_sync(0xffffffffu, place, offset));
    }
}

__device__ Key block_max(Key key) {
    __shared__ Key keys[32];
    for (int offset = 16; offset > 0; offset /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, offset));
    const int lane = threadIdx.x % 32;
    if (lane == 0) keys[threadIdx.x / 32] = key;
    __syncthreads();
    key = keys[lane % (THREADS / 32)];
    for (int offset = 16; offset > 0; offset /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, offset));
    return key;
}

template <int N> __device__ int place_of_max(const float *row, int cols) {
    const Pack<N> *from = (const Pack<N> *)row;
    const int vectors = cols / N;
    float value = -INFINITY;
    int place = METHOD == 1 ? 0 : cols;
    Key key = 0;
    for (int first = threadIdx.x; first < vectors; first += UNROLL * THREADS) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (first + u * THREADS < vectors) pack[u] = from[first + u * THREADS];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int v = first + u * THREADS;
            if (v >= vectors) break;
#pragma unroll
            for (int i = 0; i < N; i++) {
                if (METHOD == 0) best_of(value, place, pack[u].at[i], v * N + i);
                if (METHOD == 1) value = fmaxf(value, pack[u].at[i]);
                if (METHOD == 2) key = max(key, key_of(pack[u].at[i], v * N + i));
            }
        }
    }
    if (METHOD == 2) return (int)~(unsigned)block_max(key);
    block_best(value, place);
    if (METHOD == 0) return place;

    __shared__ int earliest;
    if (threadIdx.x == 0) earliest = cols;
    __syncthreads();
    for (int v = threadIdx.x; v < vectors; v += THREADS) {
        const Pack<N> pack = from[v];
        int found = cols;
#pragma unroll
        for (int i = N - 1; i >= 0; i--)
            if (pack.at[i] == value) found = v * N + i;
        if (found < cols) {
            atomicMin(&earliest, found);
            break;
        }
    }
    __syncthreads();
    return earliest;
}

extern "C" __global__ void __launch_bounds__(THREADS)
argmax(const float *__restrict__ x, long long *__restrict__ y, int rows, int cols) {
    const float *row = x + (size_t)blockIdx.x * cols;
    const int place = cols % VECTOR == 0 ? place_of_max<VECTOR>(row, cols) : place_of_max<1>(row, cols);
    if (threadIdx.x == 0) y[blockIdx.x] = place;
}
