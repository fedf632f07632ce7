// presage: entry causal_conv1d
// presage: tune THREADS = 1, 2, 4
// presage: tune METHOD = 2, 1, 0
// presage: tune NV = 1, 2, 4
// presage: tune FIXED = 0, 1
// presage: where METHOD == 2 or NV == 1
//
// METHOD 0 sums the taps of one output at a time, 1 adds one tap's multiple of the row at a time, 2 holds NV vectors
// of outputs in registers while all taps are added. FIXED compiles the common widths apart, so that taps unroll.

$lanes$
#define RUN (NV * LANES)
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline float output(const float *x, const float *weight, int t, int width) {
    float sum = 0.0f;
    int first = t < width - 1 ? width - 1 - t : 0;
    const float *from = x + t - (width - 1);
#pragma omp simd reduction(+ : sum)
    for (int j = first; j < width; j++) sum += weight[j] * from[j];
    return sum;
}

static inline __attribute__((always_inline)) void row(const float *x, const float *weight, float *restrict y,
                                                      int length, int width) {
    if (METHOD == 1) {
        for (int t = 0; t < length; t++) y[t] = 0.0f;
        for (int j = 0; j < width; j++) {
            int shift = width - 1 - j;
#pragma omp simd
            for (int t = shift; t < length; t++) y[t] += weight[j] * x[t - shift];
        }
        return;
    }
    int t = 0;
    for (; t < length && t < width - 1; t++) y[t] = output(x, weight, t, width);
    for (; METHOD == 2 && t + RUN <= length; t += RUN) {
        vec sum[NV];
        for (int v = 0; v < NV; v++) sum[v] = (vec){0};
        for (int j = 0; j < width; j++)
            for (int v = 0; v < NV; v++) sum[v] += weight[j] * *(const vec *)(x + t - (width - 1) + j + v * LANES);
        for (int v = 0; v < NV; v++) *(vec *)(y + t + v * LANES) = sum[v];
    }
    for (; t < length; t++) y[t] = output(x, weight, t, width);
}

void causal_conv1d(const float *x, const float *weight, float *y, int batch, int channels, int length, int width) {
#pragma omp parallel for collapse(2) num_threads(THREADS)
    for (int b = 0; b < batch; b++) {
        for (int c = 0; c < channels; c++) {
            long start = ((long)b * channels + c) * length;
            const float *taps = weight + (long)c * width;
            if (FIXED && width == 4)
                row(x + start, taps, y + start, length, 4);
            else if (FIXED && width == 16)
                row(x + start, taps, y + start, length, 16);
            else
                row(x + start, taps, y + start, length, width);
        }
    }
}
