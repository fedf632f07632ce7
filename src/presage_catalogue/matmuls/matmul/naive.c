// presage: problem matmul
// presage: entry matmul

void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int p = 0; p < k; p++) sum += a[(long)i * k + p] * b[(long)p * n + j];
            c[(long)i * n + j] = sum;
        }
    }
}
