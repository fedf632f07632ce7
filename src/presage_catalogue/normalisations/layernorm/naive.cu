// presage: problem layernorm
// presage: entry layernorm
// presage: grid rows
// presage: block 256
//
// One block per row, which it reads three times: for the mean, the variance and the result.

__device__ float total(float value) {
    __shared__ float part[256];
    part[threadIdx.x] = value;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    value = part[0];
    __syncthreads(); // before the next total writes to part
    return value;
}

extern "C" __global__ void layernorm(const float *x, const float *weight, const float *bias, float *y, int rows,
                                     int cols) {
    const float *in = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;

    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += in[c];
    const float mean = total(sum) / cols;

    float squares = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) squares += (in[c] - mean) * (in[c] - mean);
    const float scale = 1.0f / sqrtf(total(squares) / cols + 1e-5f);

    for (int c = threadIdx.x; c < cols; c += 256) out[c] = (in[c] - mean) * scale * weight[c] + bias[c];
}
