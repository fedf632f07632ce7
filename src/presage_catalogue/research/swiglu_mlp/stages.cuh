// presage: entry expand
// presage: grid cdiv(tokens, BM) * cdiv(f, BN)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry contract
// presage: grid cdiv(tokens, BM) * cdiv(d, BN)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: scratch hidden = 4 * tokens * f

#define ARGUMENTS                                                                                                       \
    const float *__restrict__ x, const float *__restrict__ w1, const float *__restrict__ w3,                            \
        const float *__restrict__ w2, float *__restrict__ y, int tokens, int d, int f, float *__restrict__ hidden

extern "C" __global__ void __launch_bounds__(THREADS) expand(ARGUMENTS) {
    product<2>(
        blockIdx.x, tokens, f, d, [&](int i, int p) { return x[i * d + p]; },
        [&](int p, int j, int q) { return (q ? w3 : w1)[p * f + j]; },
        [&](int i, int j, const float (&s)[2]) { hidden[i * f + j] = s[0] / (1.0f + expf(-s[0])) * s[1]; });
}

extern "C" __global__ void __launch_bounds__(THREADS) contract(ARGUMENTS) {
    product<1>(
        blockIdx.x, tokens, d, f, [&](int i, int p) { return hidden[i * f + p]; },
        [&](int p, int j, int) { return w2[p * d + j]; },
        [&](int i, int j, const float (&s)[1]) { y[i * d + j] = s[0]; });
}
