// presage: problem gdn_chunk_fwd_o
// presage: entry score
// presage: grid heads * chunks, 16
// presage: block 256
// presage: entry output
// presage: grid heads * chunks, cdiv(64 * dv, 256)
// presage: block 256
// presage: scratch scores = 16384 * heads * chunks

extern "C" __global__ void score(const float *q, const float *k, const float *v_new, const float *h, const float *g,
                                 float *o, int heads, int chunks, int dk, int dv, float *scores) {
    const int at = blockIdx.y * 256 + threadIdx.x, i = at / 64, j = at % 64;
    const size_t first = (size_t)blockIdx.x * 64;
    float sum = 0.0f;
    for (int d = 0; d < dk; d++) sum += q[(first + i) * dk + d] * k[(first + j) * dk + d];
    scores[first * 64 + at] = j <= i ? sum * expf(g[first + i] - g[first + j]) : 0.0f;
}

extern "C" __global__ void output(const float *q, const float *k, const float *v_new, const float *h, const float *g,
                                  float *o, int heads, int chunks, int dk, int dv, float *scores) {
    const int at = blockIdx.y * 256 + threadIdx.x, i = at / dv, col = at % dv;
    if (i >= 64) return;
    const size_t first = (size_t)blockIdx.x * 64;
    float sum = 0.0f;
    for (int d = 0; d < dk; d++) sum += q[(first + i) * dk + d] * h[((size_t)blockIdx.x * dk + d) * dv + col];
    sum *= expf(g[first + i]);
    for (int j = 0; j <= i; j++) sum += scores[(first + i) * 64 + j] * v_new[(first + j) * dv + col];
    o[(first + i) * dv + col] = sum / sqrtf((float)dk);
}
