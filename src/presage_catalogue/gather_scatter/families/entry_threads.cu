// presage: entry $entry$
// presage: tune THREADS = 256, 64, 128, 1024
// presage: tune UNROLL = 4, 1, 8
// presage: tune STREAM = 0, 1
// presage: tune CACHED = 1, 0
// presage: tune ACC = float, double
// presage: tune ROWS = 1, 2
// presage: where ACC == "float" or ROWS == 1
// presage: grid cdiv(rows, THREADS * ROWS)
// presage: block THREADS
//
// A thread takes a row, or ROWS of them one after the other, and goes through its entries, UNROLL in flight at once.
// STREAM reads the matrix with the hint that it is not needed again; CACHED reads x through the first-level cache, else
// only through the second.

__device__ float value_at(const float *p) { return STREAM ? __ldcs(p) : *p; }
__device__ int column_at(const int *p) { return STREAM ? __ldcs(p) : *p; }
__device__ float x_at(const float *p) { return CACHED ? *p : __ldcg(p); }

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    for (int k = 0; k < ROWS; k++) {
        const int r = (blockIdx.x * ROWS + k) * THREADS + threadIdx.x;
        if (r >= rows) return;
        const int begin = $entry_begin$, end = $entry_end$, step = $entry_step$;
        ACC sum = 0;
        int j = begin;
        for (; j + (UNROLL - 1) * step < end; j += UNROLL * step) {
            float value[UNROLL];
            int column[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) value[u] = value_at(values + j + u * step);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) column[u] = column_at(columns + j + u * step);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) sum += (ACC)value[u] * (ACC)x_at(x + column[u]);
        }
        for (; j < end; j += step) sum += (ACC)value_at(values + j) * (ACC)x_at(x + column_at(columns + j));
        y[r] = (float)sum;
    }
}
