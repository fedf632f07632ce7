// presage: entry totals
// presage: tune PARTS = 4, 2, 8, 32
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 4, 1
// presage: tune REVERSE = 0, 1
// presage: grid rows * PARTS
// presage: block THREADS
// presage: entry results
// presage: grid rows * PARTS
// presage: block THREADS
// presage: scratch partial = $state_bytes$ * rows * PARTS
//
// PARTS blocks share a row. The first launch leaves each part's total in memory, the second joins them and writes the
// result, for which it reads the inputs again. REVERSE has it begin with the rows that the first launch read last.

$prelude$

struct Range {
    int first, end;
};

__device__ Range share_of(int groups, int part) {
    const int share = (groups + PARTS - 1) / PARTS;
    return {part * share + (int)threadIdx.x, min(groups, (part + 1) * share)};
}

template <int N> __device__ State part_total(const Arguments &a, const Row &row, int r, int part) {
    const Range range = share_of(a.cols / N, part);
    State s = identity();
    for (int v = range.first; v < range.end; v += THREADS) {
        if (MASKED && v * N >= row.extent) break;
        s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    }
    return block_total<THREADS>(s);
}

template <int N> __device__ void write_part(const Arguments &a, const Row &row, int r, int part, const State &s) {
    const Range range = share_of(a.cols / N, part);
    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
    for (int v = range.first; v < range.end; v += THREADS) {
        Group<N> group = {};
        if (!MASKED || v * N < row.extent) group = fetch<N>(a, r, v);
        to[v] = mapped<N>(group, s, row, v * N);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) totals($parameters$, State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int r = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    const Row row = row_of(&a, r);
    const State s = cols % VECTOR == 0 ? part_total<VECTOR>(a, row, r, part) : part_total<1>(a, row, r, part);
    if (threadIdx.x == 0) partial[blockIdx.x] = s;
}

extern "C" __global__ void __launch_bounds__(THREADS) results($parameters$, const State *__restrict__ partial) {
    const Arguments a = {$names$};
    const int block = REVERSE ? gridDim.x - 1 - blockIdx.x : blockIdx.x, r = block / PARTS, part = block % PARTS;
    const Row row = row_of(&a, r);
    State s = partial[r * PARTS];
    for (int p = 1; p < PARTS; p++) s = joined(s, partial[r * PARTS + p]);
    s = settled(s);
    if (cols % VECTOR == 0) write_part<VECTOR>(a, row, r, part, s);
    else write_part<1>(a, row, r, part, s);
}
