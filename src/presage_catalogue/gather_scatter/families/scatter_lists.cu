// presage: entry clear
// presage: tune THREADS = 128, 32, 512
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 1, 4
// presage: tune ORDERED = 0, 1
// presage: grid cdiv(targets, 256)
// presage: block 256
// presage: entry count
// presage: grid cdiv(n, 256)
// presage: block 256
// presage: entry place
// presage: grid 1
// presage: block 1024
// presage: entry fill
// presage: grid cdiv(n, 256)
// presage: block 256
// presage: entry $scatter_entry$
// presage: grid cdiv(targets * cols, THREADS * VECTOR)
// presage: block THREADS
// presage: scratch begins = 4 * (targets + 1)
// presage: scratch ends = 4 * (targets + 1)
// presage: scratch members = 4 * n
//
// Makes a list of the rows that each target has: counts them, finds where each list begins, and fills the lists. Then
// every target adds up its own, VECTOR columns a thread with UNROLL rows in flight, without any atomic addition of
// floats. ORDERED finds the beginnings with neighbouring targets in one thread, else a block's width apart.
$rows_wide$

#define LISTS $scatter_arguments$, int *begins, int *ends, int *members

template <int N> struct alignas(4 * N) Pack { float at[N]; };

extern "C" __global__ void clear(LISTS) {
    const int t = blockIdx.x * 256 + threadIdx.x;
    if (t < targets) ends[t] = 0;
}

extern "C" __global__ void count(LISTS) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(ends + indices[i], 1);
}

// One block: in chunks of a target per thread, or every thread a stretch of targets.
extern "C" __global__ void place(LISTS) {
    __shared__ int sums[1024];
    const int me = threadIdx.x, span = ORDERED ? (targets + 1023) / 1024 : 1;
    int carry = 0;
    for (int first = 0; first < targets; first += 1024 * span) {
        const int start = first + me * span;
        int mine = 0;
        for (int t = start; t < min(targets, start + span); t++) mine += ends[t];
        sums[me] = mine;
        __syncthreads();
        for (int step = 1; step < 1024; step *= 2) {
            const int before = me >= step ? sums[me - step] : 0;
            __syncthreads();
            sums[me] += before;
            __syncthreads();
        }
        int at = carry + sums[me] - mine;
        for (int t = start; t < min(targets, start + span); t++) {
            const int length = ends[t];
            begins[t] = at;
            ends[t] = at;
            at += length;
        }
        carry += sums[1023];
        __syncthreads();
    }
}

extern "C" __global__ void fill(LISTS) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) members[atomicAdd(ends + indices[i], 1)] = i;
}

template <int N> __device__ __forceinline__ void add_up(LISTS, int t, int c) {
    const int end = ends[t];
    float sum[N] = {};
    int j = begins[t];
    for (; j + UNROLL <= end; j += UNROLL) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) pack[u] = *(const Pack<N> *)(x + (size_t)members[j + u] * cols + c);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int i = 0; i < N; i++) sum[i] += pack[u].at[i];
    }
    for (; j < end; j++) {
        const Pack<N> pack = *(const Pack<N> *)(x + (size_t)members[j] * cols + c);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] += pack.at[i];
    }
    Pack<N> out;
#pragma unroll
    for (int i = 0; i < N; i++) out.at[i] = sum[i];
    *(Pack<N> *)(y + (size_t)t * cols + c) = out;
}

extern "C" __global__ void __launch_bounds__(THREADS) $scatter_entry$(LISTS) {
    const int lanes = cols % VECTOR == 0 ? cols / VECTOR : cols;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < targets * lanes; i += gridDim.x * THREADS) {
        if (cols % VECTOR == 0)
            add_up<VECTOR>(x, indices, y, n, targets, cols, begins, ends, members, i / lanes, i % lanes * VECTOR);
        else
            add_up<1>(x, indices, y, n, targets, cols, begins, ends, members, i / lanes, i % lanes);
    }
}
