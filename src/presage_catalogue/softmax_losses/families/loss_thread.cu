// presage: entry row_losses
// presage: tune THREADS = 64, 32, 128, 256
// presage: tune STAGED = 0, 1
// presage: tune VECTOR = 4, 1
// presage: where STAGED == 0 or VECTOR == 1
// presage: grid cdiv(rows, THREADS)
// presage: block THREADS
// presage: shared $element_bytes$ * $inputs$ * 33 * THREADS if STAGED else 0
//
// One thread per row. STAGED has each warp read 32 columns of its rows in order, row by row, and hand them over in
// shared memory.

$prelude$

extern __shared__ __align__(16) unsigned char memory[];

__device__ State staged_total(const Arguments &a, const Row &row, int r) {
    Group<1>(*tile)[33] = (Group<1>(*)[33])memory + threadIdx.x / 32 * 32;
    const int lane = threadIdx.x % 32;
    State s = identity();
    for (int start = 0; start < a.cols; start += 32) {
        for (int i = 0; i < 32; i++)
            if (r - lane + i < a.rows && start + lane < a.cols) tile[i][lane] = fetch<1>(a, r - lane + i, start + lane);
        __syncwarp();
        if (r < a.rows)
            for (int i = 0; i < min(32, a.cols - start); i++) s = included<1>(s, tile[lane][i], row, start + i);
        __syncwarp();
    }
    return s;
}

template <int N> __device__ State own_total(const Arguments &a, const Row &row, int r) {
    State s = identity();
#pragma unroll 4
    for (int v = 0; v < a.cols / N; v++) s = included<N>(s, fetch<N>(a, r, v), row, v * N);
    return s;
}

extern "C" __global__ void __launch_bounds__(THREADS) row_losses($parameters$) {
    const Arguments a = {$names$};
    const int r = blockIdx.x * THREADS + threadIdx.x;
    const Row row = row_of(&a, min(r, rows - 1));
    State s = identity();
    if (STAGED) s = staged_total(a, row, r);
    else if (r < rows) s = cols % VECTOR == 0 ? own_total<VECTOR>(a, row, r) : own_total<1>(a, row, r);
    if (r < rows) $loss$[r] = finished(&a, s, row, r);
}
