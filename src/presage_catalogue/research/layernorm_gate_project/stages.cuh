// presage: entry measure
// presage: grid cdiv(rows, 4)
// presage: block 128
// presage: entry project
// presage: grid cdiv(rows, BM) * cdiv(hidden, BN)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: scratch moments = 8 * rows

#define ARGUMENTS                                                                                                       \
    const float *__restrict__ x, const float *__restrict__ mask, const float *__restrict__ gamma,                       \
        const float *__restrict__ beta, const float *__restrict__ w_proj, const float *__restrict__ w_gate,             \
        float *__restrict__ y, int rows, int c, int hidden, float *__restrict__ moments

__device__ float warp_sum(float v) {
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

// Each row's mean and the factor that makes its deviation one.
extern "C" __global__ void measure(ARGUMENTS) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f, square = 0.0f;
    for (int p = lane; p < c; p += 32) sum += x[row * c + p];
    const float mean = warp_sum(sum) / c;
    for (int p = lane; p < c; p += 32) square += (x[row * c + p] - mean) * (x[row * c + p] - mean);
    square = warp_sum(square);
    if (lane == 0) moments[2 * row] = mean, moments[2 * row + 1] = rsqrtf(square / c + 1e-5f);
}

extern "C" __global__ void __launch_bounds__(THREADS) project(ARGUMENTS) {
    product<2>(
        blockIdx.x, rows, hidden, c,
        [&](int i, int p) { return (x[i * c + p] - moments[2 * i]) * moments[2 * i + 1] * gamma[p] + beta[p]; },
        [&](int p, int j, int q) { return (q ? w_gate : w_proj)[p * hidden + j]; },
        [&](int i, int j, const float (&s)[2]) { y[i * hidden + j] = mask[i] * s[0] / (1.0f + expf(-s[1])); });
}
