// presage: problem batched_matmul
// presage: entry batched_matmul
// presage: grid cdiv(batch * m * n, 256)
// presage: block 256

extern "C" __global__ void batched_matmul(const float *a, const float *b, float *c, int batch, int m, int n, int k) {
    const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= (size_t)batch * m * n) return;
    const int j = at % n;
    const size_t t = at / n / m;
    const float *row = a + at / n * k;
    const float *column = b + t * k * n + j;
    float sum = 0.0f;
    for (int p = 0; p < k; p++) sum += row[p] * column[(size_t)p * n];
    c[at] = sum;
}
