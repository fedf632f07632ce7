// presage: problem vector_add
// presage: entry vector_add
// presage: grid cdiv(n, 256)
// presage: block 256

extern "C" __global__ void vector_add(const float *x, const float *y, float *z, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
