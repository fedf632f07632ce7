// presage: problem sum
// presage: entry row_sum
// presage: grid rows
// presage: block 256

extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols) {
    __shared__ float part[256];
    const float *in = x + (size_t)blockIdx.x * cols;
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int c = t; c < cols; c += 256) sum += in[c];
    part[t] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = part[0];
}
