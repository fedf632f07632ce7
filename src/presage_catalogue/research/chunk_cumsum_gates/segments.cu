// presage: problem chunk_cumsum_gates
// presage: tune ROWS = 8, 4, 16, 2
// presage: tune WIDE = 32, 16, 64, 8
// presage: tune CHUNKS = 1, 2, 4
// presage: tune MERGE = 0, 1
// presage: where WIDE * (64 // ROWS) * CHUNKS <= 1024 and WIDE * (64 // ROWS) * CHUNKS >= 64
// presage: entry sums
// presage: grid cdiv(length, 64 * CHUNKS), cdiv(heads, WIDE), batch
// presage: block WIDE, 64 // ROWS, CHUNKS
//
// Each head's chunk is cut into segments of ROWS tokens, one for each thread, which keeps them in registers. The
// segments' totals meet in shared memory, where each thread adds those before its own, or (MERGE) they are summed up by
// doubling distances. WIDE heads and CHUNKS chunks make a block.

#define SEGMENTS (64 / ROWS)

extern "C" __global__ void __launch_bounds__(WIDE * SEGMENTS * CHUNKS)
sums(const float *__restrict__ g, float *__restrict__ y, int batch, int length, int heads) {
    __shared__ float totals[CHUNKS][SEGMENTS][WIDE];
    const int x = threadIdx.x, segment = threadIdx.y, chunk = threadIdx.z, h = blockIdx.y * WIDE + x;
    const int t = (blockIdx.x * CHUNKS + chunk) * 64 + segment * ROWS;
    const size_t start = ((size_t)blockIdx.z * length + t) * heads + h;
    float v[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) v[r] = h < heads && t + r < length ? g[start + (size_t)r * heads] : 0.0f;
#pragma unroll
    for (int r = 1; r < ROWS; r++) v[r] += v[r - 1];
    totals[chunk][segment][x] = v[ROWS - 1];
    __syncthreads();
    float before = 0.0f;
    if (MERGE) {
        for (int by = 1; by < SEGMENTS; by *= 2) {
            const float other = segment >= by ? totals[chunk][segment - by][x] : 0.0f;
            __syncthreads();
            totals[chunk][segment][x] += other;
            __syncthreads();
        }
        before = segment ? totals[chunk][segment - 1][x] : 0.0f;
    } else {
        for (int s = 0; s < segment; s++) before += totals[chunk][s][x];
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (h < heads && t + r < length) y[start + (size_t)r * heads] = v[r] + before;
}
