// presage: entry parts
// presage: tune PARTS = 4, 2, 16, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: tune ORDER = 0, 1
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry losses
// presage: grid cdiv(rows, 128)
// presage: block 128
// presage: scratch partial = $state_bytes$ * rows * PARTS
//
// PARTS blocks share a row and leave their totals in memory; a second launch joins those. With ORDER 0 a block takes
// one stretch of the row, with 1 every PARTS-th step of THREADS groups.

$prelude$

template <int N> __device__ State part_total(const Arguments &a, const Row &row, int r, int part) {
    const int groups = a.cols / N, share = (groups + PARTS - 1) / PARTS;
    const int first = ORDER ? part * THREADS : part * share, end = ORDER ? groups : min(groups, first + share);
    State s = identity();
    for (int v = first + threadIdx.x; v < end; v += ORDER ? PARTS * THREADS : THREADS)
        s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    return block_total<THREADS>(s);
}

extern "C" __global__ void __launch_bounds__(THREADS) parts($parameters$, State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int r = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const Row row = row_of(&a, r);
    const State s = cols % VECTOR == 0 ? part_total<VECTOR>(a, row, r, part) : part_total<1>(a, row, r, part);
    if (threadIdx.x == 0) partial[blockIdx.x] = s;
}

extern "C" __global__ void losses($parameters$, const State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int r = blockIdx.x * 128 + threadIdx.x;
    if (r >= rows) return;
    State s = identity();
    for (int p = 0; p < PARTS; p++) s = joined(s, partial[r * PARTS + p]);
    $loss$[r] = finished(&a, s, row_of(&a, r), r);
}
