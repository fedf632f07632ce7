// presage: entry $entry$
// presage: tune WARPS = 4, 1, 8, 16, 32
// presage: tune ROWS = 1, 2, 4, 8
// presage: tune PASSES = 1, 2
// presage: tune UNROLL = 4, 8, 1
// presage: tune EXPONENT = 0, 1
// presage: tune MAXIMUM = 1, 0
// presage: where MAXIMUM == 1 or (PASSES == 1 and EXPONENT == 0 and UNROLL == 4 and WARPS <= 8)
// presage: where EXPONENT == 0 or UNROLL == 4
// presage: where WARPS * ROWS <= 64 and (UNROLL == 4 or WARPS <= 8)
// presage: grid cdiv($queries$, WARPS * ROWS), heads
// presage: block 32 * WARPS
// presage: shared 256 * WARPS * ROWS
//
// A warp has ROWS queries; each lane takes the scores of every 32nd key and then adds up two dimensions of the result.
// One of PASSES goes over the keys once and lets what it has shrink when a larger score comes; two look for the largest
// first. EXPONENT turns scores to powers of two. Without MAXIMUM no score is subtracted.
$scores$

#if EXPONENT
#define POWER exp2f
#define UNIT 1.44269504f
#else
#define POWER expf
#define UNIT 1.0f
#endif

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
    for (int by = 16; by > 0; by /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, by));
    return v;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) $entry$($arguments$) {
    extern __shared__ __align__(16) float memory[]; // the queries, by warp, row and dimension
    const int rows = $queries$, head = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = (blockIdx.x * WARPS + warp) * ROWS;
    const float scale = UNIT / sqrtf((float)dim);
    float *mine = memory + warp * ROWS * DIM;
    const Number *const all_k = k + (size_t)($head$) * keys * dim, *const all_v = v + (size_t)($head$) * keys * dim;
    q += (size_t)head * rows * dim;
    out += (size_t)head * rows * dim;
    if (row >= rows) return;
    for (int e = lane; e < ROWS * DIM; e += 32) {
        const int i = min(row + e / DIM, rows - 1), c = e % DIM;
        mine[e] = c < dim ? number(q[(size_t)i * dim + c]) : 0.0f;
    }
    __syncwarp();
    const int begin = first_key(row, rows, keys$range_arguments$) / 32 * 32;
    const int stop = min(end_key(min(row + ROWS, rows) - 1, rows, keys$range_arguments$), keys);

    const auto scores = [&](int j, float(&score)[ROWS]) {
        float dot[ROWS] = {};
        const Number *key = all_k + (size_t)min(j, keys - 1) * dim;
#pragma unroll UNROLL
        for (int c = 0; c < dim; c += 4) {
            const float4 there = four(key + c);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 here = *(const float4 *)(mine + r * DIM + c);
                dot[r] += here.x * there.x + here.y * there.y + here.z * there.z + here.w * there.w;
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = min(row + r, rows - 1);
            const bool seen = j >= first_key(i, rows, keys$range_arguments$) &&
                              j < min(end_key(i, rows, keys$range_arguments$), keys);
            const float added = bias(head, i, j, rows, keys$bias_arguments$) * UNIT;
            score[r] = seen ? dot[r] * scale + added : -INFINITY;
        }
    };

    float largest[ROWS], sum[ROWS] = {}, low[ROWS] = {}, high[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) largest[r] = MAXIMUM ? -INFINITY : 0.0f;
    if (PASSES == 2) {
        for (int start = begin; start < stop; start += 32) {
            float score[ROWS];
            scores(start + lane, score);
#pragma unroll
            for (int r = 0; r < ROWS; r++) largest[r] = fmaxf(largest[r], score[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) largest[r] = warp_max(largest[r]);
    }
    for (int start = begin; start < stop; start += 32) {
        float score[ROWS];
        scores(start + lane, score);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (MAXIMUM && PASSES == 1) {
                const float larger = fmaxf(largest[r], warp_max(score[r]));
                const float shrink = larger == -INFINITY ? 1.0f : POWER(largest[r] - larger);
                sum[r] *= shrink, low[r] *= shrink, high[r] *= shrink;
                largest[r] = larger;
            }
            score[r] = score[r] == -INFINITY ? 0.0f : POWER(score[r] - largest[r]);
            sum[r] += score[r];
        }
        const int here = min(32, stop - start);
#pragma unroll UNROLL
        for (int t = 0; t < here; t++) {
            const Number *value = all_v + (size_t)(start + t) * dim;
            const float first = lane < dim ? number(value[lane]) : 0.0f;
            const float second = lane + 32 < dim ? number(value[lane + 32]) : 0.0f;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float weight = __shfl_sync(0xffffffffu, score[r], t);
                low[r] += weight * first, high[r] += weight * second;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int by = 16; by > 0; by /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], by);
        if (row + r >= rows) continue;
        if (lane < dim) put(out + (size_t)(row + r) * dim + lane, low[r] / sum[r]);
        if (lane + 32 < dim) put(out + (size_t)(row + r) * dim + lane + 32, high[r] / sum[r]);
    }
}
