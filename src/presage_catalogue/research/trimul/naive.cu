// presage: problem trimul
// presage: entry normalise
// presage: grid cdiv(n * n, 128)
// presage: block 128
// presage: entry project
// presage: grid cdiv(2 * n * n * hidden, 256)
// presage: block 256
// presage: entry contract
// presage: grid cdiv(n * n * hidden, 256)
// presage: block 256
// presage: entry normalise_sums
// presage: grid cdiv(n * n, 128)
// presage: block 128
// presage: entry finish
// presage: grid cdiv(n * n * c, 256)
// presage: block 256
// presage: scratch x = 4 * n * n * c
// presage: scratch sides = 8 * n * n * hidden
// presage: scratch sums = 4 * n * n * hidden

#define ARGUMENTS                                                                                                       \
    const float *z, const float *mask, const float *gamma, const float *beta, const float *w_proj, const float *w_gate, \
        const float *w_out_gate, const float *gamma_out, const float *beta_out, const float *w_out, float *y, int n,    \
        int c, int hidden, float *x, float *sides, float *sums

__device__ void layer_norm(const float *from, float *to, const float *gamma, const float *beta, int width) {
    float mean = 0.0f, square = 0.0f;
    for (int p = 0; p < width; p++) mean += from[p];
    mean /= width;
    for (int p = 0; p < width; p++) square += (from[p] - mean) * (from[p] - mean);
    const float scale = rsqrtf(square / width + 1e-5f);
    for (int p = 0; p < width; p++) to[p] = (from[p] - mean) * scale * gamma[p] + beta[p];
}

extern "C" __global__ void normalise(ARGUMENTS) {
    const int at = blockIdx.x * 128 + threadIdx.x;
    if (at < n * n) layer_norm(z + at * c, x + at * c, gamma, beta, c);
}

extern "C" __global__ void project(ARGUMENTS) {
    const int at = blockIdx.x * 256 + threadIdx.x, width = 2 * hidden;
    if (at >= n * n * width) return;
    const int pair = at / width, h = at % width;
    float value = 0.0f, gate = 0.0f;
    for (int p = 0; p < c; p++) {
        value += x[pair * c + p] * w_proj[p * width + h];
        gate += x[pair * c + p] * w_gate[p * width + h];
    }
    sides[at] = mask[pair] * value / (1.0f + expf(-gate));
}

extern "C" __global__ void contract(ARGUMENTS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= n * n * hidden) return;
    const int h = at % hidden, j = at / hidden % n, i = at / hidden / n;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += sides[(i * n + k) * 2 * hidden + h] * sides[(j * n + k) * 2 * hidden + hidden + h];
    sums[at] = sum;
}

extern "C" __global__ void normalise_sums(ARGUMENTS) {
    const int at = blockIdx.x * 128 + threadIdx.x;
    if (at < n * n) layer_norm(sums + at * hidden, sums + at * hidden, gamma_out, beta_out, hidden);
}

extern "C" __global__ void finish(ARGUMENTS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= n * n * c) return;
    const int pair = at / c, j = at % c;
    float value = 0.0f, gate = 0.0f;
    for (int p = 0; p < hidden; p++) value += sums[pair * hidden + p] * w_out[p * c + j];
    for (int p = 0; p < c; p++) gate += x[pair * c + p] * w_out_gate[p * c + j];
    y[at] = value / (1.0f + expf(-gate));
}
