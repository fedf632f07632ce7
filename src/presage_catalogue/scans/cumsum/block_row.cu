// presage: problem cumsum
// presage: entry cumsum
// presage: tune THREADS = 256, 64, 128, 512, 1024
// presage: tune ITEMS = 4, 1, 8, 16
// presage: tune ORDER = 0, 1
// presage: tune AHEAD = 0, 1
// presage: where ITEMS > 1 or ORDER == 0
// presage: where ORDER == 0 or THREADS * ITEMS <= 8192
// presage: grid rows
// presage: block THREADS
//
// One block per row walks along it, THREADS * ITEMS elements at a time: each thread scans ITEMS neighbours, warps
// scan the threads' sums by shuffles. With ORDER 0 a thread reads its neighbours from memory; with 1 the block reads
// in order and hands them over in shared memory. AHEAD reads the next tile before the block meets to scan this one.

#define TILE (THREADS * ITEMS)
// A word of padding per 32 keeps the strided side of the exchange free of bank conflicts.
#define PADDED(i) ((i) + (i) / 32)

__device__ int column(int start, int i) {
    return start + (ORDER ? i * THREADS + threadIdx.x : threadIdx.x * ITEMS + i);
}

// Four neighbours at a time where the rows' alignment allows it.
__device__ bool vectors(int cols) { return !ORDER && ITEMS % 4 == 0 && cols % 4 == 0; }

__device__ void load(const float *in, int start, int cols, float (&item)[ITEMS]) {
    if (vectors(cols)) {
#pragma unroll
        for (int i = 0; i < ITEMS; i += 4) {
            const int c = column(start, i);
            *(float4 *)(item + i) = c < cols ? *(const float4 *)(in + c) : make_float4(0, 0, 0, 0);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) item[i] = column(start, i) < cols ? in[column(start, i)] : 0.0f;
}

__device__ void store(float *out, int start, int cols, float (&item)[ITEMS]) {
    if (vectors(cols)) {
#pragma unroll
        for (int i = 0; i < ITEMS; i += 4)
            if (column(start, i) < cols) *(float4 *)(out + column(start, i)) = *(float4 *)(item + i);
        return;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (column(start, i) < cols) out[column(start, i)] = item[i];
}

// To each thread's neighbours (forth) and back. A thread writes where only it has read, so one barrier is enough.
__device__ void exchange_items(float *exchange, float (&item)[ITEMS], bool forth) {
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        exchange[PADDED(forth ? i * THREADS + threadIdx.x : threadIdx.x * ITEMS + i)] = item[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        item[i] = exchange[PADDED(forth ? threadIdx.x * ITEMS + i : i * THREADS + threadIdx.x)];
}

// The sum of the threads before this one; `total` becomes that of all.
__device__ float before_thread(float sum, float &total) {
    __shared__ float of_warp[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float running = sum;
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, running, offset);
        if (lane >= offset) running += other;
    }
    __syncthreads(); // the last tile's readers are done with of_warp
    if (lane == 31) of_warp[warp] = running;
    __syncthreads();
    const float mine = lane < THREADS / 32 ? of_warp[lane] : 0.0f;
    float warps = mine;
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, warps, offset);
        if (lane >= offset) warps += other;
    }
    total = __shfl_sync(0xffffffffu, warps, 31);
    const float exclusive = __shfl_up_sync(0xffffffffu, running, 1);
    const float earlier = __shfl_sync(0xffffffffu, warps, warp > 0 ? warp - 1 : 0);
    return (warp > 0 ? earlier : 0.0f) + (lane > 0 ? exclusive : 0.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS)
cumsum(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    __shared__ float exchange[ORDER ? PADDED(TILE) : 1];
    const float *in = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
    float before = 0.0f;
    alignas(16) float item[ITEMS], next[ITEMS];
    load(in, 0, cols, next);
    for (int start = 0; start < cols; start += TILE) {
        if (AHEAD || start == 0) {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) item[i] = next[i];
            if (AHEAD) load(in, start + TILE, cols, next);
        } else {
            load(in, start, cols, item);
        }
        if (ORDER) exchange_items(exchange, item, true);
#pragma unroll
        for (int i = 1; i < ITEMS; i++) item[i] += item[i - 1];
        float total;
        const float offset = before + before_thread(item[ITEMS - 1], total);
        before += total;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) item[i] += offset;
        if (ORDER) exchange_items(exchange, item, false);
        store(out, start, cols, item);
    }
}
