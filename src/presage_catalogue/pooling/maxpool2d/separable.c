// presage: problem maxpool2d
// presage: entry maxpool2d
// presage: tune THREADS = 1, 2, 4
// presage: tune METHOD = 1, 2, 0
// presage: tune LADDER = 0, 1
// presage: tune FIXED = 0, 1
// presage: where METHOD == 1 or LADDER == 0
//
// METHOD 0 compares all of a window; 1 takes maxima down the columns, then along the row they make; 2 takes maxima
// along every row once, then down the columns. LADDER finds a run's maximum by doubling: 1, 2, 4 .. window wide.
// FIXED compiles the common windows apart, so that their loops unroll.
#include <stdlib.h>
#include <string.h>

/* Both are read before the choice, or the compiler must keep a branch and cannot vectorise. */
static inline float larger(float a, float b) { return a > b ? a : b; }

/* out[i] = max(out[i], in[i * stride]) */
static inline __attribute__((always_inline)) void merge(float *restrict out, const float *restrict in, int count,
                                                        int stride) {
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float a = out[i], b = in[i * stride];
        out[i] = larger(a, b);
    }
}

static inline __attribute__((always_inline)) void copy(float *restrict out, const float *restrict in, int count,
                                                       int stride) {
#pragma omp simd
    for (int i = 0; i < count; i++) out[i] = in[i * stride];
}

/* out[q] = max of in[q * stride] .. in[q * stride + window - 1]. With LADDER, `in` is overwritten. */
static inline __attribute__((always_inline)) void along(float *restrict out, float *in, int cols, int window,
                                                        int stride) {
    int wide = 1, last = (cols - 1) * stride + window;
    for (; LADDER && 2 * wide <= window; wide *= 2)
        for (int i = 0; i + wide < last; i++) {
            float a = in[i], b = in[i + wide];
            in[i] = larger(a, b);
        }
    copy(out, in, cols, stride);
    for (int v = wide; v + wide <= window; v += wide) merge(out, in + v, cols, stride);
    if (window % wide) merge(out, in + window - wide, cols, stride);
}

static inline __attribute__((always_inline)) void plane(const float *in, float *restrict out, float *scratch, int h,
                                                        int w, int window, int stride) {
    int rows = (h - window) / stride + 1, cols = (w - window) / stride + 1;
    for (int p = 0; METHOD == 2 && p < (rows - 1) * stride + window; p++)
        along(scratch + (long)p * cols, (float *)in + (long)p * w, cols, window, stride);
    for (int p = 0; p < rows; p++, out += cols) {
        const float *top = in + (long)p * stride * w;
        if (METHOD == 0) {
            copy(out, top, cols, stride);
            for (int u = 0; u < window; u++)
                for (int v = 0; v < window; v++) merge(out, top + (long)u * w + v, cols, stride);
        } else if (METHOD == 1) {
            memcpy(scratch, top, sizeof(float) * w);
            for (int u = 1; u < window; u++) merge(scratch, top + (long)u * w, w, 1);
            along(out, scratch, cols, window, stride);
        } else {
            top = scratch + (long)p * stride * cols;
            memcpy(out, top, sizeof(float) * cols);
            for (int u = 1; u < window; u++) merge(out, top + (long)u * cols, cols, 1);
        }
    }
}

void maxpool2d(const float *x, float *y, int n, int c, int h, int w, int window, int stride) {
    int rows = (h - window) / stride + 1, cols = (w - window) / stride + 1;
#pragma omp parallel num_threads(THREADS)
    {
        float *scratch = malloc(sizeof(float) * (METHOD == 2 ? (long)h * cols : w));
#pragma omp for
        for (int i = 0; i < n * c; i++) {
            const float *in = x + (long)i * h * w;
            float *out = y + (long)i * rows * cols;
            if (FIXED && window == 3 && stride == 2)
                plane(in, out, scratch, h, w, 3, 2);
            else if (FIXED && window == 2 && stride == 2)
                plane(in, out, scratch, h, w, 2, 2);
            else if (FIXED && stride == 1)
                plane(in, out, scratch, h, w, window, 1);
            else
                plane(in, out, scratch, h, w, window, stride);
        }
        free(scratch);
    }
}
