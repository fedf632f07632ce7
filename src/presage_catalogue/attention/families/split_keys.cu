// presage: entry parts
// presage: tune PARTS = 4, 1, 2, 8, 16, 64
// presage: tune WARPS = 4, 1, 2, 8
// presage: tune LANES = 16, 4, 8, 32
// presage: tune KEYS = 2, 1, 4
// presage: tune MAXIMUM = 1, 0
// presage: where MAXIMUM == 1 or (KEYS == 2 and LANES == 16 and PARTS >= 4)
// presage: where LANES >= 8 or KEYS <= 2
// presage: where WARPS > 1 or PARTS > 1
// presage: where KEYS == 2 or (WARPS >= 2 and PARTS >= 4 and LANES >= 8)
// presage: where PARTS > 2 or LANES == 16
// presage: grid PARTS, $queries$, heads
// presage: block 32 * WARPS
// presage: entry combine
// presage: grid $queries$, heads
// presage: block 64
// presage: scratch partial = 4 * 66 * heads * $queries$ * PARTS
//
// The keys of a query are cut into PARTS, a block for each. LANES lanes have a key together, so that a block goes over
// WARPS * 32 / LANES keys at a time, KEYS times over before it looks at them; each such team keeps its own largest score,
// sum and result, which shrink when a larger score comes. A second launch puts the parts together.
$scores$

#define TEAMS (WARPS * 32 / LANES)
#define COLS (DIM / LANES)

// Dimensions of a team's lane: runs of up to four of them, so that neighbouring lanes read neighbouring memory.
__device__ __forceinline__ int col_of(int u, int lane) {
    const int run = COLS < 4 ? COLS : 4;
    return (u / run * LANES + lane) * run + u % run;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) parts($arguments$, float *__restrict__ partial) {
    __shared__ float all_largest[TEAMS], all_sum[TEAMS], all_total[TEAMS][DIM];
    const int rows = $queries$, head = blockIdx.z, i = blockIdx.y, lane = threadIdx.x % LANES;
    const int team = threadIdx.x / LANES;
    const size_t row = (size_t)head * rows + i;
    const Number *const all_k = k + (size_t)($head$) * keys * dim;
    const Number *const all_v = v + (size_t)($head$) * keys * dim;
    const int first = first_key(i, rows, keys$range_arguments$), end = min(end_key(i, rows, keys$range_arguments$), keys);
    const int share = (end - first + PARTS - 1) / PARTS;
    const int begin = first + blockIdx.x * share, stop = min(begin + share, end);
    const float scale = 1.0f / sqrtf((float)dim);

    float query[COLS], total[COLS] = {}, sum = 0.0f, largest = MAXIMUM ? -INFINITY : 0.0f;
#pragma unroll
    for (int u = 0; u < COLS; u++) {
        const int c = col_of(u, lane);
        query[u] = c < dim ? number(q[row * dim + c]) * scale : 0.0f;
    }
    for (int start = begin; start < stop; start += TEAMS * KEYS) {
        float key[KEYS][COLS], value[KEYS][COLS], score[KEYS];
#pragma unroll
        for (int t = 0; t < KEYS; t++) {
            const size_t j = min(start + t * TEAMS + team, stop - 1);
#pragma unroll
            for (int u = 0; u < COLS; u++) {
                const int c = col_of(u, lane);
                key[t][u] = c < dim ? number(all_k[j * dim + c]) : 0.0f;
                value[t][u] = c < dim ? number(all_v[j * dim + c]) : 0.0f;
            }
        }
        float larger = largest;
#pragma unroll
        for (int t = 0; t < KEYS; t++) {
            const int j = start + t * TEAMS + team;
            float dot = 0.0f;
#pragma unroll
            for (int u = 0; u < COLS; u++) dot += query[u] * key[t][u];
#pragma unroll
            for (int by = LANES / 2; by > 0; by /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, by);
            score[t] = j < stop ? dot + bias(head, i, j, rows, keys$bias_arguments$) : -INFINITY;
            if (MAXIMUM) larger = fmaxf(larger, score[t]);
        }
        if (MAXIMUM) {
            const float shrink = larger == -INFINITY ? 1.0f : expf(largest - larger);
            sum *= shrink;
#pragma unroll
            for (int u = 0; u < COLS; u++) total[u] *= shrink;
            largest = larger;
        }
#pragma unroll
        for (int t = 0; t < KEYS; t++) {
            const float weight = score[t] == -INFINITY ? 0.0f : expf(score[t] - largest);
            sum += weight;
#pragma unroll
            for (int u = 0; u < COLS; u++) total[u] += weight * value[t][u];
        }
    }
#pragma unroll
    for (int u = 0; u < COLS; u++) all_total[team][col_of(u, lane)] = total[u];
    if (lane == 0) all_largest[team] = largest, all_sum[team] = sum;
    __syncthreads();
    float *to = partial + (row * PARTS + blockIdx.x) * 66;
    for (int c = threadIdx.x; c < DIM; c += 32 * WARPS) {
        float larger = -INFINITY, whole = 0.0f, column = 0.0f;
        for (int g = 0; g < TEAMS; g++) larger = fmaxf(larger, all_largest[g]);
        for (int g = 0; g < TEAMS; g++) {
            const float shrink = all_largest[g] == -INFINITY ? 0.0f : expf(all_largest[g] - larger);
            whole += all_sum[g] * shrink, column += all_total[g][c] * shrink;
        }
        to[c] = column;
        if (c == 0) to[64] = larger, to[65] = whole;
    }
}

extern "C" __global__ void combine($arguments$, float *__restrict__ partial) {
    const size_t row = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    const float *from = partial + row * PARTS * 66;
    const int c = threadIdx.x;
    float largest = -INFINITY, sum = 0.0f, total = 0.0f;
    for (int part = 0; part < PARTS; part++) largest = fmaxf(largest, from[part * 66 + 64]);
    for (int part = 0; part < PARTS; part++) {
        const float shrink = from[part * 66 + 64] == -INFINITY ? 0.0f : expf(from[part * 66 + 64] - largest);
        sum += from[part * 66 + 65] * shrink, total += from[part * 66 + c] * shrink;
    }
    if (c < dim) put(out + row * dim + c, total / sum);
}
