// presage: problem gdn_recompute_w_u
// presage: entry multiply
// presage: grid heads * chunks, cdiv(64 * (dk + dv), 256)
// presage: block 256

extern "C" __global__ void multiply(const float *k, const float *v, const float *beta, const float *a, const float *g,
                                    float *w, float *u, int heads, int chunks, int dk, int dv) {
    const int at = blockIdx.y * 256 + threadIdx.x, i = at / (dk + dv), col = at % (dk + dv);
    if (i >= 64) return;
    const size_t first = (size_t)blockIdx.x * 64;
    float sum = 0.0f;
    for (int j = 0; j < 64; j++) {
        const float left = a[(first + i) * 64 + j] * beta[first + j];
        if (col < dk) sum += left * expf(g[first + j]) * k[(first + j) * dk + col];
        else sum += left * v[(first + j) * dv + col - dk];
    }
    if (col < dk) w[(first + i) * dk + col] = sum;
    else u[(first + i) * dv + col - dk] = sum;
}
