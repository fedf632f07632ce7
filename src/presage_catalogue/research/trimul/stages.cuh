// presage: entry measure
// presage: grid cdiv(n * n, 4)
// presage: block 128
// presage: entry project
// presage: grid cdiv(n * n, BM) * cdiv(2 * hidden, BN)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry open_gate
// presage: grid cdiv(n * n, BM) * cdiv(c, BN)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry contract
// presage: grid cdiv(n, BM) * cdiv(n, BN), hidden
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry measure_sums
// presage: grid cdiv(n * n, 4)
// presage: block 128
// presage: entry finish
// presage: grid cdiv(n * n, BM) * cdiv(c, BN)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: scratch moments = 8 * n * n
// presage: scratch sides = 8 * n * n * hidden
// presage: scratch sums = 4 * n * n * hidden

#define ARGUMENTS                                                                                                       \
    const float *__restrict__ z, const float *__restrict__ mask, const float *__restrict__ gamma,                       \
        const float *__restrict__ beta, const float *__restrict__ w_proj, const float *__restrict__ w_gate,             \
        const float *__restrict__ w_out_gate, const float *__restrict__ gamma_out, const float *__restrict__ beta_out,  \
        const float *__restrict__ w_out, float *__restrict__ y, int n, int c, int hidden, float *__restrict__ moments,  \
        float *__restrict__ sides, float *__restrict__ sums

__device__ float warp_sum(float v) {
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

// Each row's mean and the factor that makes its deviation one.
__device__ void measure_rows(const float *from, int rows, int width, float *moments) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    from += (size_t)row * width;
    float sum = 0.0f, square = 0.0f;
    for (int p = lane; p < width; p += 32) sum += from[p];
    const float mean = warp_sum(sum) / width;
    for (int p = lane; p < width; p += 32) square += (from[p] - mean) * (from[p] - mean);
    square = warp_sum(square);
    if (lane == 0) moments[2 * row] = mean, moments[2 * row + 1] = rsqrtf(square / width + 1e-5f);
}
__device__ float normal(const float *from, const float *moments, const float *gamma, const float *beta, int width,
                        int i, int p) {
    return (from[i * width + p] - moments[2 * i]) * moments[2 * i + 1] * gamma[p] + beta[p];
}

extern "C" __global__ void measure(ARGUMENTS) { measure_rows(z, n * n, c, moments); }

extern "C" __global__ void __launch_bounds__(THREADS) project(ARGUMENTS) {
    product<2>(
        blockIdx.x, n * n, 2 * hidden, c, [&](int i, int p) { return normal(z, moments, gamma, beta, c, i, p); },
        [&](int p, int j, int q) { return (q ? w_gate : w_proj)[p * 2 * hidden + j]; },
        [&](int i, int j, const float (&s)[2]) { sides[i * 2 * hidden + j] = mask[i] * s[0] / (1.0f + expf(-s[1])); });
}

extern "C" __global__ void __launch_bounds__(THREADS) open_gate(ARGUMENTS) {
    product<1>(
        blockIdx.x, n * n, c, c, [&](int i, int p) { return normal(z, moments, gamma, beta, c, i, p); },
        [&](int p, int j, int) { return w_out_gate[p * c + j]; },
        [&](int i, int j, const float (&s)[1]) { y[i * c + j] = 1.0f / (1.0f + expf(-s[0])); });
}

extern "C" __global__ void __launch_bounds__(THREADS) contract(ARGUMENTS) {
    const int h = blockIdx.y;
    product<1>(
        blockIdx.x, n, n, n, [&](int i, int k) { return sides[(i * n + k) * 2 * hidden + h]; },
        [&](int k, int j, int) { return sides[(j * n + k) * 2 * hidden + hidden + h]; },
        [&](int i, int j, const float (&s)[1]) { sums[(i * n + j) * hidden + h] = s[0]; });
}

extern "C" __global__ void measure_sums(ARGUMENTS) { measure_rows(sums, n * n, hidden, moments); }

extern "C" __global__ void __launch_bounds__(THREADS) finish(ARGUMENTS) {
    product<1>(
        blockIdx.x, n * n, c, hidden,
        [&](int i, int p) { return normal(sums, moments, gamma_out, beta_out, hidden, i, p); },
        [&](int p, int j, int) { return w_out[p * c + j]; },
        [&](int i, int j, const float (&s)[1]) { y[i * c + j] *= s[0]; });
}
