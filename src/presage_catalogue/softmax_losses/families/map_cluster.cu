// presage: entry map_rows
// presage: tune CLUSTER = 4, 2, 8, 16
// presage: tune THREADS = 512, 256, 1024
// presage: tune KEEP = 8, 0, 4, 16
// presage: where CLUSTER < 16 or (THREADS == 256 and KEEP == 8)
// presage: grid rows * CLUSTER
// presage: block THREADS
//
// A cluster of CLUSTER blocks shares a row and exchanges its totals through the blocks' shared memory. KEEP groups of
// four elements stay in each thread's registers between finding the total and writing the result; what lies beyond is
// read again.

$prelude$

__device__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The word at `at` in the shared memory of another block of the cluster.
__device__ float remote(const float *at, int rank) {
    unsigned address = (unsigned)__cvta_generic_to_shared(at), there;
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    return value;
}

#define WORDS (sizeof(State) / sizeof(float))

__device__ State cluster_total(State s) {
    __shared__ State own;
    s = block_total<THREADS>(s);
    if (threadIdx.x == 0) own = s;
    cluster_barrier();
    s = identity();
    for (int rank = 0; rank < CLUSTER; rank++) {
        State other;
        for (int w = 0; w < WORDS; w++) ((float *)&other)[w] = remote((const float *)&own + w, rank);
        s = joined(s, other);
    }
    cluster_barrier(); // nobody leaves while others still read
    return s;
}

template <int N> __device__ void map_row(const Arguments &a, int r, int rank) {
    const Row row = row_of(&a, r);
    const int groups = a.cols / N, seen = MASKED ? (row.extent + N - 1) / N : groups;
    const int first = rank * THREADS + threadIdx.x, stride = CLUSTER * THREADS;
    Group<N> kept[KEEP > 0 ? KEEP : 1];
    State s = identity();
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (first + k * stride < seen) kept[k] = fetch<N>(a, r, first + k * stride);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (first + k * stride < seen) s = included<N>(s, kept[k], row, (first + k * stride) * N);
    for (int v = first + KEEP * stride; v < seen; v += stride) s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    s = settled(cluster_total(s));

    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (first + k * stride < groups) to[first + k * stride] = mapped<N>(kept[k], s, row, (first + k * stride) * N);
    for (int v = first + KEEP * stride; v < groups; v += stride) {
        Group<N> group = {};
        if (v < seen) group = fetch<N>(a, r, v);
        to[v] = mapped<N>(group, s, row, v * N);
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS) map_rows($parameters$) {
    const Arguments a = {$names$};
    const int r = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    if (cols % 4 == 0) map_row<4>(a, r, rank);
    else map_row<1>(a, r, rank);
}
