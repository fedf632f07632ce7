// presage: problem layernorm_gate_project
// presage: entry normalise
// presage: grid cdiv(rows, 128)
// presage: block 128
// presage: entry project
// presage: grid cdiv(rows * hidden, 256)
// presage: block 256
// presage: scratch normal = 4 * rows * c

#define ARGUMENTS                                                                                                       \
    const float *x, const float *mask, const float *gamma, const float *beta, const float *w_proj, const float *w_gate, \
        float *y, int rows, int c, int hidden, float *normal

extern "C" __global__ void normalise(ARGUMENTS) {
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= rows) return;
    x += row * c, normal += row * c;
    float mean = 0.0f, square = 0.0f;
    for (int p = 0; p < c; p++) mean += x[p];
    mean /= c;
    for (int p = 0; p < c; p++) square += (x[p] - mean) * (x[p] - mean);
    const float scale = rsqrtf(square / c + 1e-5f);
    for (int p = 0; p < c; p++) normal[p] = (x[p] - mean) * scale * gamma[p] + beta[p];
}

extern "C" __global__ void project(ARGUMENTS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= rows * hidden) return;
    const int row = at / hidden, h = at % hidden;
    float value = 0.0f, gate = 0.0f;
    for (int p = 0; p < c; p++) {
        value += normal[row * c + p] * w_proj[p * hidden + h];
        gate += normal[row * c + p] * w_gate[p * hidden + h];
    }
    y[at] = mask[row] * value / (1.0f + expf(-gate));
}
