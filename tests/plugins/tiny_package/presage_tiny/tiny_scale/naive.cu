// presage: problem tiny_scale
// presage: entry tiny_scale
// presage: grid cdiv(n, 256)
// presage: block 256
extern "C" __global__ void tiny_scale(const float *x, float *y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3.0f * x[i];
}
