// presage: problem batchnorm_inference
// presage: entry batchnorm
// presage: grid cdiv(batch * channels * size, 256)
// presage: block 256

extern "C" __global__ void batchnorm(const float *x, const float *mean, const float *variance, const float *weight,
                                     const float *bias, float *y, int batch, int channels, int size) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= batch * channels * size) return;
    const int c = i / size % channels;
    y[i] = (x[i] - mean[c]) / sqrtf(variance[c] + 1e-5f) * weight[c] + bias[c];
}
