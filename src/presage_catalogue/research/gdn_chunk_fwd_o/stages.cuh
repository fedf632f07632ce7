// presage: entry score
// presage: grid cdiv(64, BM) * cdiv(64, BN), heads * chunks
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry output
// presage: grid cdiv(64, BM) * cdiv(dv, BN), heads * chunks
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: scratch scores = 16384 * heads * chunks

#define ARGUMENTS                                                                                                       \
    const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v_new,                          \
        const float *__restrict__ h, const float *__restrict__ g, float *__restrict__ o, int heads, int chunks, int dk, \
        int dv, float *__restrict__ scores

extern "C" __global__ void __launch_bounds__(THREADS) score(ARGUMENTS) {
    const size_t first = (size_t)blockIdx.y * 64;
    product<1>(
        blockIdx.x, 64, 64, dk, [&](int i, int d) { return q[(first + i) * dk + d]; },
        [&](int d, int j, int) { return k[(first + j) * dk + d]; },
        [&](int i, int j, const float (&s)[1]) {
            scores[(first + i) * 64 + j] = j <= i ? s[0] * expf(g[first + i] - g[first + j]) : 0.0f;
        });
}

// One sum over the state's rows and then over the chunk's tokens.
extern "C" __global__ void __launch_bounds__(THREADS) output(ARGUMENTS) {
    const size_t first = (size_t)blockIdx.y * 64;
    const float *state = h + (size_t)blockIdx.y * dk * dv;
    const float scale = 1.0f / sqrtf((float)dk);
    product<1>(
        blockIdx.x, 64, dv, dk + 64,
        [&](int i, int p) {
            return p < dk ? q[(first + i) * dk + p] * expf(g[first + i]) : scores[(first + i) * 64 + p - dk];
        },
        [&](int p, int j, int) { return p < dk ? state[p * dv + j] : v_new[(first + p - dk) * dv + j]; },
        [&](int i, int j, const float (&s)[1]) { o[(first + i) * dv + j] = s[0] * scale; });
}
