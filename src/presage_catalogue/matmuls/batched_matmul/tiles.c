// presage: entry batched_matmul
// presage: tune THREADS = 1, 2, 4
// presage: tune MR = 4, 8, 12
// presage: tune NV = 2, 1
// presage: tune PACK = 0, 1
// presage: tune SPLIT = 0, 1
// presage: where not (MR == 12 and NV == 1)
// presage: where not (PACK == 1 and SPLIT == 1)
//
// MR x NR tiles of c are held in registers over the whole sum. PACK copies each b into panels that a tile reads front
// to back. SPLIT shares out rows of tiles rather than whole products, which is more even and shares less of b.
#include <stdlib.h>

$lanes$
#define NR (NV * LANES)
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static int min(int a, int b) { return a < b ? a : b; }

/* Rows of a past the last one are read from the last one, and their results dropped. */
static inline void tile(const float *a, const float *b, long ldb, float *c, int rows, int cols, int n, int k) {
    const float *left[MR];
    vec sum[MR][NV];
    for (int i = 0; i < MR; i++) {
        left[i] = a + (long)min(i, rows - 1) * k;
        for (int v = 0; v < NV; v++) sum[i][v] = (vec){0};
    }
    for (int p = 0; p < k; p++) {
        vec right[NV];
        for (int v = 0; v < NV; v++) right[v] = *(const vec *)(b + p * ldb + v * LANES);
        for (int i = 0; i < MR; i++)
            for (int v = 0; v < NV; v++) sum[i][v] += left[i][p] * right[v];
    }
    if (rows == MR && cols == NR) {
        for (int i = 0; i < MR; i++)
            for (int v = 0; v < NV; v++) *(vec *)(c + (long)i * n + v * LANES) = sum[i][v];
        return;
    }
    float whole[MR * NR];
    for (int i = 0; i < MR; i++)
        for (int v = 0; v < NV; v++) *(vec *)(whole + i * NR + v * LANES) = sum[i][v];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) c[(long)i * n + j] = whole[i * NR + j];
}

static void pack_panel(const float *b, int cols, int n, int k, float *out) {
    for (int p = 0; p < k; p++)
        for (int j = 0; j < NR; j++) out[p * NR + j] = j < cols ? b[(long)p * n + j] : 0.0f;
}

/* c = a * b for `rows` rows. `panel` has room for one panel: the current one, or the ragged last one. */
static void product(const float *a, const float *b, float *c, float *panel, int rows, int n, int k) {
    for (int j = 0; j < n; j += NR) {
        int cols = min(NR, n - j), copied = PACK || cols < NR;
        if (copied) pack_panel(b + j, cols, n, k, panel);
        for (int i = 0; i < rows; i += MR)
            tile(a + (long)i * k, copied ? panel : b + j, copied ? NR : n, c + (long)i * n + j, min(MR, rows - i),
                 cols, n, k);
    }
}

void batched_matmul(const float *a, const float *b, float *c, int batch, int m, int n, int k) {
    int step = SPLIT ? MR : m;
#pragma omp parallel num_threads(THREADS)
    {
        float *panel = malloc(sizeof(float) * NR * k);
#pragma omp for collapse(2)
        for (int t = 0; t < batch; t++)
            for (int i = 0; i < m; i += step)
                product(a + ((long)t * m + i) * k, b + (long)t * k * n, c + ((long)t * m + i) * n, panel,
                        min(step, m - i), n, k);
        free(panel);
    }
}
