// presage: entry scan_rows
// presage: tune THREADS = 64, 32, 128, 256
// presage: tune STAGED = 0, 1
// presage: tune ITEMS = 4, 1, 8, 16
// presage: where STAGED == 0 or ITEMS >= 8
// presage: grid cdiv(rows, THREADS)
// presage: block THREADS
// presage: shared ($state_bytes$ + 4) * (ITEMS + 1) * THREADS if STAGED else 0
//
// One thread per row, ITEMS elements at a time. STAGED has the block read and write ITEMS columns of its rows in order
// and hand them over in shared memory.

$prelude$

extern __shared__ float memory[];

__device__ void staged(const Arguments &a, int first) {
    State(*in)[ITEMS + 1] = (State(*)[ITEMS + 1])memory;
    float(*out)[ITEMS + 1] = (float(*)[ITEMS + 1])(in + THREADS);
    State carried = identity();
    for (int start = 0; start < a.cols; start += ITEMS) {
        for (int i = threadIdx.x; i < THREADS * ITEMS; i += THREADS) {
            const int r = first + i / ITEMS, c = start + i % ITEMS;
            if (r < a.rows && c < a.cols) in[i / ITEMS][i % ITEMS] = element(&a, r, c);
        }
        __syncthreads();
        for (int i = 0; i < min(ITEMS, a.cols - start); i++) {
            const State s = joined(carried, in[threadIdx.x][i]);
            out[threadIdx.x][i] = finished(carried, s);
            carried = s;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < THREADS * ITEMS; i += THREADS) {
            const int r = first + i / ITEMS, c = start + i % ITEMS;
            if (r < a.rows && c < a.cols) a.$out$[position(&a, r, c)] = out[i / ITEMS][i % ITEMS];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) scan_rows($parameters$) {
    const Arguments a = {$names$};
    if (STAGED) {
        staged(a, blockIdx.x * THREADS);
        return;
    }
    const int r = blockIdx.x * THREADS + threadIdx.x;
    if (r >= rows) return;
    State carried = identity(), item[ITEMS];
    for (int start = 0; start < cols; start += ITEMS) {
        load<ITEMS>(a, r, start, item);
        scan_items<ITEMS>(item);
        store<ITEMS>(a, r, start, carried, item);
        carried = joined(carried, item[ITEMS - 1]);
    }
}
