// presage: entry recur
// presage: grid cdiv(dv, BN), heads
// presage: block (BM // TM) * (BN // TN) * LANES

extern "C" __global__ void __launch_bounds__(THREADS)
recur(const float *__restrict__ k, const float *__restrict__ w, const float *__restrict__ u,
      const float *__restrict__ g, float *h, float *v_new, int heads, int chunks, int dk, int dv) {
    const int head = blockIdx.y, across = (dv + BN - 1) / BN, col = blockIdx.x * BN;
    float *state = h + (size_t)head * chunks * dk * dv;
    for (int e = threadIdx.x; e < dk * BN; e += THREADS)
        if (col + e % BN < dv) state[e / BN * dv + col + e % BN] = 0.0f;
    for (int c = 0; c < chunks; c++, state += dk * dv) {
        __syncthreads();
        const size_t first = (size_t)(head * chunks + c) * 64;
        const float *wc = w + first * dk, *kc = k + first * dk, *uc = u + first * dv, *gc = g + first;
        float *vc = v_new + first * dv, *next = state + dk * dv;
        for (int row = 0; row < 64; row += BM)
            product<1>(
                row / BM * across + blockIdx.x, 64, dv, dk, [&](int t, int d) { return wc[t * dk + d]; },
                [&](int d, int j, int) { return state[d * dv + j]; },
                [&](int t, int j, const float (&s)[1]) { vc[t * dv + j] = uc[t * dv + j] - s[0]; });
        if (c + 1 == chunks) return;
        __syncthreads();
        const float last = gc[63];
        for (int row = 0; row < dk; row += BM)
            product<1>(
                row / BM * across + blockIdx.x, dk, dv, 64,
                [&](int d, int t) { return kc[t * dk + d] * expf(last - gc[t]); },
                [&](int t, int j, int) { return vc[t * dv + j]; },
                [&](int d, int j, const float (&s)[1]) { next[d * dv + j] = state[d * dv + j] * expf(last) + s[0]; });
    }
}
