// presage: entry map_rows
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune VECTOR = 4, 1
// presage: tune KEEP = 4, 0, 8, 16
// presage: tune STREAM = 0, 1
$tunables$
// presage: where VECTOR == 4 or KEEP <= 8
// presage: grid rows
// presage: block THREADS
//
// One block per row. KEEP groups of VECTOR elements stay in each thread's registers between finding the row's total and
// writing the result; what lies beyond is read again. STREAM marks what is written as not needed again.
// STEP, where it is one, rescales a running sum once a group instead of once an element.

$prelude$

template <int N> __device__ void put(Pack<N> *to, const Pack<N> &value) {
    if constexpr (STREAM && sizeof(Pack<N>) == 16) __stcs((float4 *)to, *(const float4 *)&value);
    else if constexpr (STREAM && sizeof(Pack<N>) == 8) __stcs((float2 *)to, *(const float2 *)&value);
    else if constexpr (STREAM && sizeof(Pack<N>) == 4) __stcs((float *)to, *(const float *)&value);
    else *to = value;
}

template <int N> __device__ void map_row(const Arguments &a, int r) {
    const Row row = row_of(&a, r);
    const int groups = a.cols / N, seen = MASKED ? (row.extent + N - 1) / N : groups;
    Group<N> kept[KEEP > 0 ? KEEP : 1];
    State s = identity();
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (threadIdx.x + k * THREADS < seen) kept[k] = fetch<N>(a, r, threadIdx.x + k * THREADS);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < seen) s = included<N>(s, kept[k], row, v * N);
    }
    for (int v = threadIdx.x + KEEP * THREADS; v < seen; v += THREADS)
        s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    s = settled(block_total<THREADS>(s));

    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int v = threadIdx.x + k * THREADS;
        if (v < groups) put<N>(to + v, mapped<N>(kept[k], s, row, v * N));
    }
    for (int v = threadIdx.x + KEEP * THREADS; v < groups; v += THREADS) {
        Group<N> group = {};
        if (v < seen) group = fetch<N>(a, r, v);
        put<N>(to + v, mapped<N>(group, s, row, v * N));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) map_rows($parameters$) {
    const Arguments a = {$names$};
    if (cols % VECTOR == 0) map_row<VECTOR>(a, blockIdx.x);
    else map_row<1>(a, blockIdx.x);
}
