// presage: problem batched_matmul
// presage: entry batched_matmul

void batched_matmul(const float *a, const float *b, float *c, int batch, int m, int n, int k) {
    for (int t = 0; t < batch; t++) {
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < n; j++) {
                float sum = 0.0f;
                for (int p = 0; p < k; p++) sum += a[((long)t * m + i) * k + p] * b[((long)t * k + p) * n + j];
                c[((long)t * m + i) * n + j] = sum;
            }
        }
    }
}
