// presage: problem swiglu_mlp
// presage: entry expand
// presage: grid cdiv(tokens * f, 256)
// presage: block 256
// presage: entry contract
// presage: grid cdiv(tokens * d, 256)
// presage: block 256
// presage: scratch hidden = 4 * tokens * f

extern "C" __global__ void expand(const float *x, const float *w1, const float *w3, const float *w2, float *y, int tokens,
                                  int d, int f, float *hidden) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= tokens * f) return;
    const int token = at / f, j = at % f;
    float a = 0.0f, b = 0.0f;
    for (int p = 0; p < d; p++) a += x[token * d + p] * w1[p * f + j], b += x[token * d + p] * w3[p * f + j];
    hidden[at] = a / (1.0f + expf(-a)) * b;
}

extern "C" __global__ void contract(const float *x, const float *w1, const float *w3, const float *w2, float *y,
                                    int tokens, int d, int f, float *hidden) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= tokens * d) return;
    float sum = 0.0f;
    for (int p = 0; p < f; p++) sum += hidden[at / d * f + p] * w2[p * d + at % d];
    y[at] = sum;
}
