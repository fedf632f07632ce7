// presage: problem batchnorm_training
// presage: entry batchnorm
// presage: grid cdiv(cols, 32)
// presage: block 32, 8
//
// A block takes 32 columns and reads them three times: for the means, the variances and the result.

__device__ float total(float value) {
    __shared__ float part[8][32];
    part[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) sum += part[k][threadIdx.x];
    __syncthreads(); // before the next total writes to part
    return sum;
}

extern "C" __global__ void batchnorm(const float *x, const float *weight, const float *bias, float *y, float *mean,
                                     float *variance, int rows, int cols) {
    const int c = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (c < cols)
        for (int r = threadIdx.y; r < rows; r += 8) sum += x[(size_t)r * cols + c];
    const float middle = total(sum) / rows;

    float squares = 0.0f;
    if (c < cols)
        for (int r = threadIdx.y; r < rows; r += 8) {
            const float apart = x[(size_t)r * cols + c] - middle;
            squares += apart * apart;
        }
    const float spread = total(squares) / rows;

    if (c >= cols) return;
    if (threadIdx.y == 0) mean[c] = middle, variance[c] = spread;
    const float scale = 1.0f / sqrtf(spread + 1e-5f);
    for (int r = threadIdx.y; r < rows; r += 8)
        y[(size_t)r * cols + c] = (x[(size_t)r * cols + c] - middle) * scale * weight[c] + bias[c];
}
