// presage: entry $entry$
// presage: tune BLOCK = 128, 64, 256
// presage: tune CHUNK = 16, 8, 32, 64
// presage: tune STAGED = 1, 0
// presage: tune ROWS = 1, 2, 4
// presage: tune PAD = 1, 0
// presage: where PAD == 1 or STAGED == 1
// presage: where ROWS * CHUNK <= 128
// presage: where STAGED == 0 or ROWS * BLOCK <= 512
// presage: grid cdiv($m$, BLOCK * ROWS)
// presage: block BLOCK
// presage: shared 4 * (64 * 64 + STAGED * BLOCK * ROWS * (16 + PAD))
//
// For few columns and terms:$few_columns$ the right factor is in shared memory, and a thread has ROWS whole rows, CHUNK
// columns at a time. With STAGED the rows come through shared memory as well, 16 terms at a time in lines of PAD more.
$operands$

extern "C" __global__ void __launch_bounds__(BLOCK) $entry$($arguments$) {
    extern __shared__ __align__(16) float memory[];
    float *factor = memory, *lines = memory + 64 * 64;
    const int rows = $m$, first = blockIdx.x * BLOCK * ROWS, thread = threadIdx.x;
    for (int e = thread; e < 64 * 64; e += BLOCK) {
        const int p = e / 64, j = e % 64;
        factor[e] = p < k && j < n ? number($rights$[(size_t)p * n + j]) : 0.0f;
    }
    __syncthreads();
    for (int start = 0; start < n; start += CHUNK) {
        float sum[ROWS][CHUNK] = {};
        for (int depth = 0; depth < k; depth += 16) {
            if (STAGED) {
                __syncthreads();
                for (int e = thread; e < BLOCK * ROWS * 16; e += BLOCK) {
                    const int i = first + e / 16, p = depth + e % 16;
                    lines[e / 16 * (16 + PAD) + e % 16] = i < rows && p < k ? number($left$[(size_t)i * k + p]) : 0.0f;
                }
                __syncthreads();
            }
#pragma unroll 4
            for (int q = 0; q < min(16, k - depth); q++) {
                float left[ROWS];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    const int i = thread + r * BLOCK;
                    left[r] = STAGED ? lines[i * (16 + PAD) + q]
                                     : number($left$[(size_t)min(first + i, rows - 1) * k + depth + q]);
                }
#pragma unroll
                for (int j = 0; j < CHUNK; j++) {
                    const float right = factor[(depth + q) * 64 + start + j];
#pragma unroll
                    for (int r = 0; r < ROWS; r++) sum[r][j] += left[r] * right;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = first + thread + r * BLOCK;
#pragma unroll
            for (int j = 0; j < CHUNK; j++)
                if (i < rows && start + j < n)
                    put($out$ + (size_t)i * n + start + j,
                        finish(sum[r][j], 0.0f, i, start + j, rows, n$extra_arguments$));
        }
    }
}
