// presage: problem rmsnorm
// presage: entry rmsnorm
// presage: grid rows
// presage: block 256
//
// One block per row, which it reads twice: for the sum of squares and for the result.

extern "C" __global__ void rmsnorm(const float *x, const float *weight, float *y, int rows, int cols) {
    __shared__ float part[256];
    const float *in = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
    const int t = threadIdx.x;

    float sum = 0.0f;
    for (int c = t; c < cols; c += 256) sum += in[c] * in[c];
    part[t] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    const float scale = 1.0f / sqrtf(part[0] / cols + 1e-6f);
    for (int c = t; c < cols; c += 256) out[c] = in[c] * scale * weight[c];
}
