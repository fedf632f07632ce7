// presage: problem batched_matmul
// presage: entry batched_matmul
// presage: tune THREADS = 1, 2, 4
// presage: tune ORDER = 1, 2, 0
//
// Plain loops that the compiler vectorises. ORDER 0 takes dot products down the columns of b, 1 adds multiples of
// b's rows to a row of c, 2 adds each row of b to all of c before it reads the next one.

static void product(const float *a, const float *b, float *restrict c, int m, int n, int k) {
#if ORDER == 0
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int p = 0; p < k; p++) sum += a[(long)i * k + p] * b[(long)p * n + j];
            c[(long)i * n + j] = sum;
        }
    }
#else
    for (long e = 0; e < (long)m * n; e++) c[e] = 0.0f;
#if ORDER == 1
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++)
#else
    for (int p = 0; p < k; p++)
        for (int i = 0; i < m; i++)
#endif
#pragma omp simd
            for (int j = 0; j < n; j++) c[(long)i * n + j] += a[(long)i * k + p] * b[(long)p * n + j];
#endif
}

void batched_matmul(const float *a, const float *b, float *c, int batch, int m, int n, int k) {
#pragma omp parallel for num_threads(THREADS)
    for (int t = 0; t < batch; t++)
        product(a + (long)t * m * k, b + (long)t * k * n, c + (long)t * m * n, m, n, k);
}
