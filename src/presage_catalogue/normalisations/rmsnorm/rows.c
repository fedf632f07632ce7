// presage: problem rmsnorm
// presage: entry rmsnorm
// presage: tune THREADS = 1, 2, 4
// presage: tune KIND = 0, 1, 2
// presage: tune WIDTH = 16, 4
// presage: tune UNROLL = 1, 4, 8
//
// KIND 0 scales a row while it is still in the cache; 1 writes x * weight on the first reading and scales that; 2 sums
// up all rows before it scales the first. UNROLL vectors of sums hide the latency of an addition.
#include <math.h>

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

/* The reciprocal of the row's root mean square. */
static inline float scale_of(const float *restrict in, const float *restrict weight, float *restrict out, int n) {
    vec part[UNROLL] = {0};
    int i = 0;
    for (; i + UNROLL * WIDTH <= n; i += UNROLL * WIDTH)
        for (int u = 0; u < UNROLL; u++) {
            int at = i + u * WIDTH;
            vec v = *(const vec *)(in + at);
            part[u] += v * v;
#if KIND == 1
            *(vec *)(out + at) = v * *(const vec *)(weight + at);
#endif
        }
    for (int u = 1; u < UNROLL; u++) part[0] += part[u];
    float sum = 0.0f;
    for (int l = 0; l < WIDTH; l++) sum += part[0][l];
    for (; i < n; i++) {
        sum += in[i] * in[i];
#if KIND == 1
        out[i] = in[i] * weight[i];
#endif
    }
    return 1.0f / sqrtf(sum / n + 1e-6f);
}

static inline void apply(const float *restrict in, const float *restrict weight, float *restrict out, int n,
                         float scale) {
#pragma omp simd simdlen(WIDTH)
    for (int i = 0; i < n; i++) {
#if KIND == 1
        out[i] *= scale;
#else
        out[i] = in[i] * scale * weight[i];
#endif
    }
}

void rmsnorm(const float *x, const float *weight, float *y, int rows, int cols) {
#if KIND == 2
    /* A row's scale waits in the first element of its output. */
#pragma omp parallel for num_threads(THREADS)
    for (long r = 0; r < rows; r++) y[r * cols] = scale_of(x + r * cols, weight, y + r * cols, cols);
#pragma omp parallel for num_threads(THREADS)
    for (long r = 0; r < rows; r++) apply(x + r * cols, weight, y + r * cols, cols, y[r * cols]);
#else
#pragma omp parallel for num_threads(THREADS)
    for (long r = 0; r < rows; r++) {
        float scale = scale_of(x + r * cols, weight, y + r * cols, cols);
        apply(x + r * cols, weight, y + r * cols, cols, scale);
    }
#endif
}
