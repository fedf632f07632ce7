// presage: entry multiply
// presage: grid cdiv(64, BM) * cdiv(dk + dv, BN), heads * chunks
// presage: block (BM // TM) * (BN // TN) * LANES

// Keys and values lie side by side, as one right-hand side.
extern "C" __global__ void __launch_bounds__(THREADS)
multiply(const float *__restrict__ k, const float *__restrict__ v, const float *__restrict__ beta,
         const float *__restrict__ a, const float *__restrict__ g, float *__restrict__ w, float *__restrict__ u,
         int heads, int chunks, int dk, int dv) {
    const size_t first = (size_t)blockIdx.y * 64;
    product<1>(
        blockIdx.x, 64, dk + dv, 64, [&](int i, int p) { return a[(first + i) * 64 + p] * beta[first + p]; },
        [&](int p, int j, int) {
            return j < dk ? k[(first + p) * dk + j] * expf(g[first + p]) : v[(first + p) * dv + j - dk];
        },
        [&](int i, int j, const float (&s)[1]) {
            if (j < dk) w[(first + i) * dk + j] = s[0];
            else u[(first + i) * dv + j - dk] = s[0];
        });
}
