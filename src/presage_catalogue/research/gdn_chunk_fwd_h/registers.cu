// presage: problem gdn_chunk_fwd_h
// presage: tune SLICES = 4, 2
// presage: tune COLS = 4, 2, 1, 8
// presage: tune WARPS = 1, 2, 4, 8
// presage: tune TOKENS = 2, 4, 1
// presage: tune EXP = expf, __expf
// presage: where (SLICES == 4 or (COLS == 4 and EXP == 'expf')) and (EXP == 'expf' or TOKENS == 2) and COLS * TOKENS <= 16
// presage: entry recur
// presage: grid cdiv(dv, COLS * WARPS), heads
// presage: block 32, WARPS
//
// A warp keeps COLS columns of the state in registers, SLICES rows of each in a lane. It takes TOKENS tokens at a time:
// their products with the state are added up across the lanes, and at once go into the next state.

extern "C" __global__ void __launch_bounds__(32 * WARPS)
recur(const float *__restrict__ k, const float *__restrict__ w, const float *__restrict__ u,
      const float *__restrict__ g, float *__restrict__ h, float *__restrict__ v_new, int heads, int chunks, int dk,
      int dv) {
    const int head = blockIdx.y, lane = threadIdx.x, col = (blockIdx.x * WARPS + threadIdx.y) * COLS;
    float state[SLICES][COLS] = {};
    for (int c = 0; c < chunks; c++) {
        const size_t first = (size_t)(head * chunks + c) * 64;
        const float last = g[first + 63], decay = EXP(last);
        float next[SLICES][COLS];
#pragma unroll
        for (int i = 0; i < SLICES; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) {
                next[i][j] = state[i][j] * decay;
                if (lane + 32 * i < dk && col + j < dv)
                    h[((size_t)(head * chunks + c) * dk + lane + 32 * i) * dv + col + j] = state[i][j];
            }
        for (int t = 0; t < 64; t += TOKENS) {
            float part[TOKENS][COLS] = {}, key[TOKENS][SLICES];
#pragma unroll
            for (int s = 0; s < TOKENS; s++)
#pragma unroll
                for (int i = 0; i < SLICES; i++) {
                    const bool inside = lane + 32 * i < dk;
                    const size_t at = (first + t + s) * dk + lane + 32 * i;
                    const float left = inside ? w[at] : 0.0f;
                    key[s][i] = inside ? k[at] : 0.0f;
#pragma unroll
                    for (int j = 0; j < COLS; j++) part[s][j] += left * state[i][j];
                }
#pragma unroll
            for (int s = 0; s < TOKENS; s++) {
                const float weight = EXP(last - g[first + t + s]);
#pragma unroll
                for (int j = 0; j < COLS; j++) {
                    float sum = part[s][j];
#pragma unroll
                    for (int by = 16; by; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
                    const size_t at = (first + t + s) * dv + min(col + j, dv - 1);
                    const float value = u[at] - sum;
                    if (lane == j && col + j < dv) v_new[at] = value;
#pragma unroll
                    for (int i = 0; i < SLICES; i++) next[i][j] += key[s][i] * value * weight;
                }
            }
        }
#pragma unroll
        for (int i = 0; i < SLICES; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) state[i][j] = next[i][j];
    }
}
