// presage: problem rmsnorm
// presage: entry rmsnorm
// presage: tune THREADS = 1, 2, 4
// presage: tune WIDTH = 16, 8, 4
// presage: tune UNROLL = 1, 2, 4, 8
//
// UNROLL vectors of sums, enough of which hide the latency of an addition.
#include <math.h>

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

static float sum_of_squares(const float *in, int n) {
    vec part[UNROLL] = {0};
    int i = 0;
    for (; i + UNROLL * WIDTH <= n; i += UNROLL * WIDTH)
        for (int u = 0; u < UNROLL; u++) {
            vec v = *(const vec *)(in + i + u * WIDTH);
            part[u] += v * v;
        }
    for (int u = 1; u < UNROLL; u++) part[0] += part[u];
    float sum = 0.0f;
    for (int l = 0; l < WIDTH; l++) sum += part[0][l];
    for (; i < n; i++) sum += in[i] * in[i];
    return sum;
}

void rmsnorm(const float *restrict x, const float *restrict weight, float *restrict y, int rows, int cols) {
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        float scale = 1.0f / sqrtf(sum_of_squares(in, cols) / cols + 1e-6f);
#pragma omp simd simdlen(WIDTH)
        for (int c = 0; c < cols; c++) out[c] = in[c] * scale * weight[c];
    }
}
