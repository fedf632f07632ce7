// presage: problem matmul_sum_rows
// presage: entry matmul_sum_rows
// presage: grid m
// presage: block 256

extern "C" __global__ void matmul_sum_rows(const float *a, const float *b, float *y, int m, int n, int k) {
    __shared__ float sums[256];
    const size_t row = blockIdx.x;
    float total = 0.0f;
    for (int j = threadIdx.x; j < n; j += 256) {
        float sum = 0.0f;
        for (int p = 0; p < k; p++) sum += a[row * k + p] * b[(size_t)p * n + j];
        total += sum;
    }
    sums[threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int t = 1; t < 256; t++) total += sums[t];
    y[row] = total;
}
