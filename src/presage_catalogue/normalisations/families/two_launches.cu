// presage: entry statistics
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = $vectors$
// presage: tune PARTS = 1, 4, 16
// presage: tune WORK = 4, 1
// presage: tune SHARE = 0, 1
// presage: where SHARE == 0 or (WORK == 4 and THREADS == 256 and PARTS > 1)
$one_pass$
// presage: grid PARTS * ($rows$)
// presage: block THREADS
// presage: entry apply
// presage: grid cdiv($cols$, THREADS * VECTOR * WORK) * ($rows$)
// presage: block THREADS
// presage: scratch firsts = 48 * PARTS * ($rows$)
// presage: scratch lasts = 48 * PARTS * ($rows$)
//
// The first launch leaves the statistics of each row in memory, taken by PARTS blocks a row whose shares are rounded up
// (SHARE 0) or down (1); the second merges them and maps the elements, WORK vectors a thread.

$norm$

$packs$

$block_total$

template <int N> __device__ void of_part(const Arrays &a, int row, int part, State *first, State *last) {
    const int vectors = a.cols / N, share = SHARE == 0 ? (vectors + PARTS - 1) / PARTS : vectors / PARTS;
    const int begin = part * share + threadIdx.x, end = min(vectors, (part + 1) * share);
    *first = empty();
    for (int v = begin; v < end; v += THREADS) include_all(first, gather<N>(a, row, v), 0, nullptr, a.cols);
    *last = *first = block_total(*first);
    if (PASSES == 2) {
        *last = empty();
        for (int v = begin; v < end; v += THREADS) include_all(last, gather<N>(a, row, v), 1, first, a.cols);
        *last = block_total(*last);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
statistics($arguments$, State *__restrict__ firsts, State *__restrict__ lasts) {
    const Arrays a = $arrays$;
    const int row = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    State first, last;
    if (a.cols % VECTOR == 0) of_part<VECTOR>(a, row, part, &first, &last);
    else of_part<1>(a, row, part, &first, &last);
    if (threadIdx.x == 0) firsts[blockIdx.x] = first, lasts[blockIdx.x] = last;
}

template <int N> __device__ void map(const Arrays &a, int row, int block, const Row *r) {
    const int vectors = a.cols / N;
#pragma unroll
    for (int w = 0; w < WORK * VECTOR / N; w++) {
        const int v = (block * (WORK * VECTOR / N) + w) * THREADS + threadIdx.x;
        if (v < vectors) scatter<N>(a, row, v, gather<N>(a, row, v), r);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
apply($arguments$, State *__restrict__ firsts, State *__restrict__ lasts) {
    const Arrays a = $arrays$;
    const int blocks = (a.cols + THREADS * VECTOR * WORK - 1) / (THREADS * VECTOR * WORK);
    const int row = blockIdx.x / blocks, block = blockIdx.x % blocks;
    State first = firsts[row * PARTS], last = lasts[row * PARTS];
    for (int part = 1; part < PARTS; part++) {
        merge(&first, &firsts[row * PARTS + part]);
        merge(&last, &lasts[row * PARTS + part]);
    }
    const Row r = finish(&first, &last, a.cols);
    if (a.cols % VECTOR == 0) map<VECTOR>(a, row, block, &r);
    else map<1>(a, row, block, &r);
}
