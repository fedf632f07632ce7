// presage: problem matmul
// presage: entry matmul
// presage: grid cdiv(n, 16), cdiv(m, 16)
// presage: block 16, 16

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    const int j = blockIdx.x * 16 + threadIdx.x;
    const int i = blockIdx.y * 16 + threadIdx.y;
    if (i >= m || j >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; p++) sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
    c[(size_t)i * n + j] = sum;
}
