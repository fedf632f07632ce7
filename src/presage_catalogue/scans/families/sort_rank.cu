// presage: entry sort_rows
// presage: tune THREADS = 256, 64, 128, 512
// presage: tune ITEMS = 1, 2, 4, 8
// presage: tune STAGED = 1, 0
// presage: tune TIES = 1, 0
// presage: where TIES == 1 or (ITEMS == 2 and STAGED == 1)
// presage: grid rows
// presage: block THREADS
// presage: shared 4 * cols if STAGED else 0
//
// One block per row. Every thread finds the places of ITEMS elements at a time by counting, over the whole row, what
// comes before them. STAGED keeps the row in shared memory. TIES tells equal elements apart by where they are.

$items$

extern __shared__ float staged[];

extern "C" __global__ void __launch_bounds__(THREADS) sort_rows($parameters$) {
    const float *row = x + (size_t)blockIdx.x * cols;
    if (STAGED) {
        for (int c = threadIdx.x; c < cols; c += THREADS) staged[c] = row[c];
        __syncthreads();
    }
    const float *keys = STAGED ? staged : row;
    for (int first = 0; first < cols; first += THREADS * ITEMS) {
        float key[ITEMS];
        int rank[ITEMS];
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int c = first + i * THREADS + threadIdx.x;
            key[i] = c < cols ? keys[c] : INFINITY;
            rank[i] = 0;
        }
        for (int j = 0; j < cols; j++) {
            const float other = keys[j];
#pragma unroll
            for (int i = 0; i < ITEMS; i++)
                rank[i] += other < key[i] || (TIES && other == key[i] && j < first + i * THREADS + (int)threadIdx.x);
        }
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int c = first + i * THREADS + threadIdx.x;
            if (c < cols) y[(size_t)blockIdx.x * cols + rank[i]] = result(item_of(row, c));
        }
    }
}
