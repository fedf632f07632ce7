// presage: problem matvec
// presage: entry matvec
// presage: grid m
// presage: block 32

extern "C" __global__ void matvec(const float *a, const float *x, float *y, int m, int k) {
    __shared__ float sums[32];
    const size_t row = blockIdx.x;
    float sum = 0.0f;
    for (int p = threadIdx.x; p < k; p += 32) sum += a[row * k + p] * x[p];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int t = 1; t < 32; t++) sum += sums[t];
    y[row] = sum;
}
