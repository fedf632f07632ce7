// presage: entry $entry$
// presage: tune BM = 32, 64, 16, 128
// presage: tune BN = 32, 64, 16
// presage: tune TM = 4, 2, 8
// presage: tune TN = 4, 2, 1
// presage: tune SKIP = 1, 0
// presage: tune MAXIMUM = 1, 0
// presage: where BM * BN >= 32 * TM * TN and BM * BN <= 1024 * TM * TN and BN <= 32 * TN
// presage: where BM * BN <= 4096 or TN == 4
// presage: where SKIP == 1 or (TN == 4 and MAXIMUM == 1)
// presage: where MAXIMUM == 1 or (TN == 2 and BN == 32)
// presage: grid cdiv($queries$, BM), heads
// presage: block (BM // TM) * (BN // TN)
// presage: shared 4 * (64 * (BM + 4) + 64 * (BN + 4) + 64 * BN + BN * (BM + 4))
//
// A block has BM queries and goes over their keys once, BN at a time from shared memory; a thread has TM * TN scores.
// With MAXIMUM, what has been added up shrinks when a larger score comes. With SKIP the tiles that no query of the block
// sees are left out.
$scores$

#define ACROSS (BN / TN)
#define THREADS ((BM / TM) * ACROSS)
#define COLS (DIM / ACROSS)

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ __align__(16) float memory[];
    float(*tile_q)[BM + 4] = (float(*)[BM + 4])memory;
    float(*tile_k)[BN + 4] = (float(*)[BN + 4])(memory + DIM * (BM + 4));
    float(*tile_v)[DIM] = (float(*)[DIM])(memory + DIM * (BM + 4) + DIM * (BN + 4));
    float(*weights)[BM + 4] = (float(*)[BM + 4])(memory + DIM * (BM + 4) + DIM * (BN + 4) + BN * DIM);
    const int rows = $queries$, head = blockIdx.y, row = blockIdx.x * BM, thread = threadIdx.x;
    const int x = thread % ACROSS, y = thread / ACROSS * TM;
    const float scale = 1.0f / sqrtf((float)dim);
    q += (size_t)head * rows * dim;
    out += (size_t)head * rows * dim;
    const size_t kept = (size_t)($head$) * keys * dim;

    for (int e = thread; e < BM * DIM; e += THREADS) {
        const int i = e / DIM, c = e % DIM;
        tile_q[c][i] = row + i < rows && c < dim ? number(q[(size_t)(row + i) * dim + c]) * scale : 0.0f;
    }
    const int begin = SKIP ? first_key(row, rows, keys$range_arguments$) / BN * BN : 0;
    const int stop = SKIP ? min(end_key(min(row + BM, rows) - 1, rows, keys$range_arguments$), keys) : keys;
    float total[TM][COLS] = {}, sum[TM] = {}, largest[TM];
#pragma unroll
    for (int r = 0; r < TM; r++) largest[r] = MAXIMUM ? -INFINITY : 0.0f;

    for (int start = begin; start < stop; start += BN) {
        __syncthreads(); // the last tile has been used
        for (int e = thread; e < BN * DIM; e += THREADS) {
            const int j = e / DIM, c = e % DIM;
            const bool inside = start + j < keys && c < dim;
            const size_t at = kept + (size_t)(start + j) * dim + c;
            tile_k[c][j] = inside ? number(k[at]) : 0.0f;
            tile_v[j][c] = inside ? number(v[at]) : 0.0f;
        }
        __syncthreads();
        float score[TM][TN] = {};
#pragma unroll 8
        for (int c = 0; c < dim; c++) {
            float left[TM], right[TN];
#pragma unroll
            for (int r = 0; r < TM; r++) left[r] = tile_q[c][y + r];
#pragma unroll
            for (int s = 0; s < TN; s++) right[s] = tile_k[c][x * TN + s];
#pragma unroll
            for (int r = 0; r < TM; r++)
#pragma unroll
                for (int s = 0; s < TN; s++) score[r][s] += left[r] * right[s];
        }
#pragma unroll
        for (int r = 0; r < TM; r++) {
            const int i = row + y + r, first = first_key(i, rows, keys$range_arguments$);
            const int end = min(end_key(i, rows, keys$range_arguments$), keys);
            float larger = largest[r];
#pragma unroll
            for (int s = 0; s < TN; s++) {
                const int j = start + x * TN + s;
                score[r][s] += bias(head, i, j, rows, keys$bias_arguments$);
                if (j < first || j >= end) score[r][s] = -INFINITY;
                if (MAXIMUM) larger = fmaxf(larger, score[r][s]);
            }
#pragma unroll
            for (int by = ACROSS / 2; MAXIMUM && by > 0; by /= 2)
                larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, by));
            const float anchor = larger == -INFINITY ? 0.0f : larger; // of a row that has seen no key yet
            const float shrink = MAXIMUM ? expf(largest[r] - anchor) : 1.0f;
            largest[r] = larger;
            sum[r] *= shrink;
#pragma unroll
            for (int u = 0; u < COLS; u++) total[r][u] *= shrink;
#pragma unroll
            for (int s = 0; s < TN; s++) {
                const float weight = expf(score[r][s] - anchor);
                sum[r] += weight;
                weights[x * TN + s][y + r] = weight;
            }
        }
        __syncwarp(); // a row's weights are used only by the warp that made them
#pragma unroll 8
        for (int j = 0; j < BN; j++) {
            float left[TM];
#pragma unroll
            for (int r = 0; r < TM; r++) left[r] = weights[j][y + r];
#pragma unroll
            for (int u = 0; u < COLS; u++) {
                const float right = tile_v[j][x + u * ACROSS];
#pragma unroll
                for (int r = 0; r < TM; r++) total[r][u] += left[r] * right;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < TM; r++) {
#pragma unroll
        for (int by = ACROSS / 2; by > 0; by /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], by);
#pragma unroll
        for (int u = 0; u < COLS; u++) {
            const int c = x + u * ACROSS;
            if (row + y + r < rows && c < dim) put(out + (size_t)(row + y + r) * dim + c, total[r][u] / sum[r]);
        }
    }
}
