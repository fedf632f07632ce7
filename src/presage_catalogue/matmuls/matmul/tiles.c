// presage: entry matmul
// presage: tune THREADS = 1, 2, 4
// presage: tune MR = 4, 8, 12
// presage: tune NV = 2, 1
// presage: tune PACK = 2, 1, 0
// presage: tune KC = 512, 128
// presage: where not (MR == 12 and NV == 1)
// presage: where PACK == 2 or KC == 512
//
// MR x NR tiles of c are held in registers over KC terms of the sum. PACK 1 copies b into panels that a tile reads
// front to back, 2 copies a as well; ragged edges are always copied, padded with zeros.
#include <stdlib.h>

$lanes$
#define NR (NV * LANES)
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static int min(int a, int b) { return a < b ? a : b; }

/* c = a * b, or c += a * b. The element (i, p) of a is at i * row + p * col. */
static inline void tile(const float *a, long row, long col, const float *b, long ldb, int depth, float *c, long ldc,
                        int add) {
    vec sum[MR][NV];
    for (int i = 0; i < MR; i++)
        for (int v = 0; v < NV; v++) sum[i][v] = add ? *(vec *)(c + i * ldc + v * LANES) : (vec){0};
    for (int p = 0; p < depth; p++) {
        vec right[NV];
        for (int v = 0; v < NV; v++) right[v] = *(const vec *)(b + p * ldb + v * LANES);
        for (int i = 0; i < MR; i++)
            for (int v = 0; v < NV; v++) sum[i][v] += a[i * row + p * col] * right[v];
    }
    for (int i = 0; i < MR; i++)
        for (int v = 0; v < NV; v++) *(vec *)(c + i * ldc + v * LANES) = sum[i][v];
}

static void edge_tile(const float *a, long row, long col, const float *b, long ldb, int depth, float *c, long ldc,
                      int add, int rows, int cols) {
    float whole[MR * NR] = {0};
    for (int i = 0; add && i < rows; i++)
        for (int j = 0; j < cols; j++) whole[i * NR + j] = c[i * ldc + j];
    tile(a, row, col, b, ldb, depth, whole, NR, add);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) c[i * ldc + j] = whole[i * NR + j];
}

static void pack_a(const float *a, int lda, int rows, int depth, float *out) {
    for (int p = 0; p < depth; p++)
        for (int i = 0; i < MR; i++) out[p * MR + i] = i < rows ? a[(long)i * lda + p] : 0.0f;
}

static void pack_b(const float *b, int ldb, int cols, int depth, float *out) {
    for (int p = 0; p < depth; p++)
        for (int j = 0; j < NR; j++) out[p * NR + j] = j < cols ? b[(long)p * ldb + j] : 0.0f;
}

void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int panels = (n + NR - 1) / NR, tiles = (m + MR - 1) / MR;
    float *packed = aligned_alloc(64, sizeof(float) * panels * NR * KC);
#pragma omp parallel num_threads(THREADS)
    for (int p0 = 0; p0 < k; p0 += KC) {
        int depth = min(KC, k - p0);
#pragma omp for
        for (int j = 0; j < panels; j++) {
            int cols = min(NR, n - j * NR);
            if (PACK > 0 || cols < NR)
                pack_b(b + (long)p0 * n + j * NR, n, cols, depth, packed + (long)j * NR * KC);
        }
#pragma omp for
        for (int i = 0; i < tiles; i++) {
            int rows = min(MR, m - i * MR);
            const float *left = a + (long)i * MR * k + p0;
            long row = k, col = 1;
            float copy[MR * KC];
            if (PACK == 2 || rows < MR) {
                pack_a(left, k, rows, depth, copy);
                left = copy, row = 1, col = MR;
            }
            for (int j = 0; j < panels; j++) {
                int cols = min(NR, n - j * NR), copied = PACK > 0 || cols < NR;
                const float *right = copied ? packed + (long)j * NR * KC : b + (long)p0 * n + j * NR;
                float *out = c + (long)i * MR * n + j * NR;
                if (rows == MR && cols == NR)
                    tile(left, row, col, right, copied ? NR : n, depth, out, n, p0 > 0);
                else
                    edge_tile(left, row, col, right, copied ? NR : n, depth, out, n, p0 > 0, rows, cols);
            }
        }
    }
    free(packed);
}
