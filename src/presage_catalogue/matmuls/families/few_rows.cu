// presage: entry parts
// presage: tune ROWS = 8, 16, 4
// presage: tune ACROSS = 32, 64, 16
// presage: tune DOWN = 8, 4, 16
// presage: tune CHUNK = 64, 16, 256
// presage: tune PARTS = 4, 1, 2, 8, 16
// presage: where ACROSS * DOWN >= 128 and ACROSS * DOWN <= 512
// presage: where CHUNK == 64 or (ROWS == 8 and ACROSS == 32)
// presage: where CHUNK % DOWN == 0
// presage: grid cdiv(n, ACROSS * 4), cdiv($m$, ROWS), PARTS
// presage: block ACROSS * DOWN
// presage: entry combine
// presage: grid cdiv($m$ * n, 256)
// presage: block 256
// presage: scratch partial = 4 * $m$ * n * PARTS
//
// For few rows:$few_rows$ a thread has ROWS of them by four neighbouring columns. The threads of a block are ACROSS by
// DOWN, and those below each other share the terms of a sum, as PARTS blocks do; the left factor is staged in shared
// memory CHUNK terms at a time. A second launch adds the parts up.
$operands$

#define THREADS (ACROSS * DOWN)

extern "C" __global__ void __launch_bounds__(THREADS) parts($arguments$, float *__restrict__ partial) {
    __shared__ float staged[CHUNK][ROWS], sums[DOWN][ACROSS * 4];
    const int rows = $m$, x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    const int row = blockIdx.y * ROWS, col = blockIdx.x * ACROSS * 4;
    const int share = (k + PARTS - 1) / PARTS, begin = min((int)blockIdx.z * share, k), end = min(begin + share, k);
    const Right *const right = $rights$;
    float sum[ROWS][4] = {};
    for (int start = begin; start < end; start += CHUNK) {
        __syncthreads();
        for (int e = threadIdx.x; e < CHUNK * ROWS; e += THREADS) {
            const int i = row + e / CHUNK, p = start + e % CHUNK;
            const bool inside = i < rows && p < end;
            staged[e % CHUNK][e / CHUNK] = inside ? number($left$[place<LEFT_ALONG_K>(i, p, rows, k)]) : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int q = y; q < CHUNK; q += DOWN) {
            const float4 v = neighbours<false>(right, col + x * 4, start + q, n, k, end);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const float left = staged[q][i];
                sum[i][0] += left * v.x, sum[i][1] += left * v.y, sum[i][2] += left * v.z, sum[i][3] += left * v.w;
            }
        }
    }
    float *to = partial + (size_t)blockIdx.z * rows * n;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        __syncthreads();
#pragma unroll
        for (int u = 0; u < 4; u++) sums[y][x * 4 + u] = sum[i][u];
        __syncthreads();
        for (int e = threadIdx.x; e < ACROSS * 4; e += THREADS) {
            float whole = 0.0f;
            for (int d = 0; d < DOWN; d++) whole += sums[d][e];
            if (row + i < rows && col + e < n) to[(size_t)(row + i) * n + col + e] = whole;
        }
    }
}

extern "C" __global__ void combine($arguments$, float *__restrict__ partial) {
    const size_t e = (size_t)blockIdx.x * 256 + threadIdx.x, size = (size_t)$m$ * n;
    if (e >= size) return;
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < PARTS; part++) sum += partial[part * size + e];
    put($out$ + e, finish(sum, 0.0f, e / n, e % n, $m$, n$extra_arguments$));
}
