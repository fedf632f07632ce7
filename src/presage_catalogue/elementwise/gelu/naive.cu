// presage: problem gelu
// presage: entry gelu
// presage: grid cdiv(n, 256)
// presage: block 256

extern "C" __global__ void gelu(const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
