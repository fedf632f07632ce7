// presage: entry $entry$
// presage: tune THREADS = 256, 32, 128, 512
// presage: tune VECTOR = $vectors$
// presage: tune KEEP = 8, 0, 2, 16
// presage: tune BLOCKS = 0, 528
// presage: where BLOCKS == 0 or VECTOR == 4
// presage: grid BLOCKS if BLOCKS else cdiv(($rows$) * 32, THREADS)
// presage: block THREADS
//
// One warp per row, KEEP vectors of which stay in each lane's registers; what lies beyond is read again from cache.
// BLOCKS 0 launches a warp per row; otherwise that many blocks walk over the rows.

$norm$

$packs$

template <int N> __device__ void normalise(const Arrays &a, int row, int lane) {
    const int vectors = a.cols / N;
    Kept<N> kept[KEEP > 0 ? KEEP : 1];
    State first = empty(), last;
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * 32 < vectors)
            include_all(&first, kept[k] = gather<N>(a, row, lane + k * 32), 0, nullptr, a.cols);
    for (int v = lane + KEEP * 32; v < vectors; v += 32) include_all(&first, gather<N>(a, row, v), 0, nullptr, a.cols);
    last = first = warp_total(first);
    if (PASSES == 2) {
        last = empty();
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (lane + k * 32 < vectors) include_all(&last, kept[k], 1, &first, a.cols);
        for (int v = lane + KEEP * 32; v < vectors; v += 32)
            include_all(&last, gather<N>(a, row, v), 1, &first, a.cols);
        last = warp_total(last);
    }
    const Row r = finish(&first, &last, a.cols);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (lane + k * 32 < vectors) scatter<N>(a, row, lane + k * 32, kept[k], &r);
    for (int v = lane + KEEP * 32; v < vectors; v += 32) scatter<N>(a, row, v, gather<N>(a, row, v), &r);
}

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($arguments$) {
    const Arrays a = $arrays$;
    const int lane = threadIdx.x % 32;
    for (int row = (blockIdx.x * THREADS + threadIdx.x) / 32; row < a.rows; row += gridDim.x * THREADS / 32) {
        if (a.cols % VECTOR == 0) normalise<VECTOR>(a, row, lane);
        else normalise<1>(a, row, lane);
    }
}
