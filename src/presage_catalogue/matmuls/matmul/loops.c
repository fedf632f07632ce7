// presage: problem matmul
// presage: entry matmul
// presage: tune THREADS = 1, 2, 4
// presage: tune ORDER = 1, 2, 0
// presage: tune KC = 32, 256
// presage: where ORDER == 1 or KC == 32
//
// Plain loops that the compiler vectorises. ORDER 0 takes dot products down the columns of b, 1 adds multiples of
// b's rows to a row of c, KC rows at a time, 2 takes dot products with a transposed copy of b.
#include <stdlib.h>

#if ORDER == 0
static void row(const float *a, const float *b, float *restrict c, int n, int k) {
    for (int j = 0; j < n; j++) {
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int p = 0; p < k; p++) sum += a[p] * b[(long)p * n + j];
        c[j] = sum;
    }
}
#elif ORDER == 2
static void row(const float *a, const float *transposed, float *restrict c, int n, int k) {
    for (int j = 0; j < n; j++) {
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int p = 0; p < k; p++) sum += a[p] * transposed[(long)j * k + p];
        c[j] = sum;
    }
}
#endif

void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
#if ORDER == 1
#pragma omp parallel num_threads(THREADS)
    for (int p0 = 0; p0 < k; p0 += KC) {
        int end = p0 + KC < k ? p0 + KC : k;
        /* Static: a thread adds to the same rows in every round, so no round waits for another. */
#pragma omp for schedule(static) nowait
        for (int i = 0; i < m; i++) {
            float *restrict out = c + (long)i * n;
            if (p0 == 0)
                for (int j = 0; j < n; j++) out[j] = 0.0f;
            for (int p = p0; p < end; p++) {
                float left = a[(long)i * k + p];
                const float *right = b + (long)p * n;
#pragma omp simd
                for (int j = 0; j < n; j++) out[j] += left * right[j];
            }
        }
    }
#else
    const float *right = b;
#if ORDER == 2
    float *transposed = malloc(sizeof(float) * n * k);
    for (int p = 0; p < k; p++)
        for (int j = 0; j < n; j++) transposed[(long)j * k + p] = b[(long)p * n + j];
    right = transposed;
#endif
#pragma omp parallel for num_threads(THREADS)
    for (int i = 0; i < m; i++) row(a + (long)i * k, right, c + (long)i * n, n, k);
#if ORDER == 2
    free(transposed);
#endif
#endif
}
