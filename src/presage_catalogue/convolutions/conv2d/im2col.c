// presage: entry conv2d
// presage: tune THREADS = 1, 2, 4
// presage: tune MR = 4, 8
// presage: tune NV = 1, 2
// presage: tune EXPAND = 0, 1
//
// Convolution as a matrix product: weights times a matrix with a row per tap and a column per output pixel. EXPAND
// writes out that whole matrix for an image first; otherwise each panel of NR pixels is made when it is needed.
#include <stdlib.h>

$lanes$
#define NR (NV * LANES)
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct {
    int c, h, w, o, r, s, cols, pixels;
} shape;

static int min(int a, int b) { return a < b ? a : b; }

/* The columns of `count` pixels, in rows of `stride`. */
static void expand(const float *x, const shape *d, int first, int count, float *out, long stride) {
    for (int in = 0; in < d->c; in++)
        for (int u = 0; u < d->r; u++)
            for (int v = 0; v < d->s; v++, out += stride) {
                int p = first / d->cols, q = first % d->cols;
                for (int done = 0; done < count; p++, q = 0) {
                    const float *source = x + ((long)in * d->h + p + u) * d->w + q + v;
                    int length = min(d->cols - q, count - done);
                    for (int e = 0; e < length; e++) out[done + e] = source[e];
                    done += length;
                }
            }
}

/* Channels past the last one are read from the last one, and their results dropped. */
static inline void tile(const float *weight, const float *panel, long stride, float *y, int rows, int count,
                        const shape *d) {
    int taps = d->c * d->r * d->s;
    const float *left[MR];
    vec sum[MR][NV];
    for (int i = 0; i < MR; i++) {
        left[i] = weight + (long)min(i, rows - 1) * taps;
        for (int k = 0; k < NV; k++) sum[i][k] = (vec){0};
    }
    for (int t = 0; t < taps; t++) {
        vec right[NV];
        for (int k = 0; k < NV; k++) right[k] = *(const vec *)(panel + t * stride + k * LANES);
        for (int i = 0; i < MR; i++)
            for (int k = 0; k < NV; k++) sum[i][k] += left[i][t] * right[k];
    }
    float whole[MR * NR];
    for (int i = 0; i < MR; i++)
        for (int k = 0; k < NV; k++) *(vec *)(whole + i * NR + k * LANES) = sum[i][k];
    for (int i = 0; i < rows; i++)
        for (int q = 0; q < count; q++) y[(long)i * d->pixels + q] = whole[i * NR + q];
}

void conv2d(const float *x, const float *weight, float *y, int n, int c, int h, int w, int o, int r, int s) {
    shape d = {c, h, w, o, r, s, w - s + 1, (h - r + 1) * (w - s + 1)};
    int taps = c * r * s, panels = (d.pixels + NR - 1) / NR;
    long padded = (long)panels * NR;
    float *matrix = EXPAND ? calloc(padded * taps, sizeof(float)) : NULL;
#pragma omp parallel num_threads(THREADS)
    {
        float *own = EXPAND ? NULL : calloc((long)NR * taps, sizeof(float));
        for (int image = 0; image < n; image++) {
            const float *source = x + (long)image * c * h * w;
            if (EXPAND) {
#pragma omp for
                for (int in = 0; in < c; in++) {
                    shape one = d;
                    one.c = 1;
                    expand(source + (long)in * h * w, &one, 0, d.pixels, matrix + in * r * s * padded, padded);
                }
            }
#pragma omp for
            for (int j = 0; j < panels; j++) {
                int count = min(NR, d.pixels - j * NR);
                if (!EXPAND) expand(source, &d, j * NR, count, own, NR);
                for (int out = 0; out < o; out += MR)
                    tile(weight + (long)out * taps, EXPAND ? matrix + (long)j * NR : own, EXPAND ? padded : NR,
                         y + ((long)image * o + out) * d.pixels + j * NR, min(MR, o - out), count, &d);
            }
        }
        free(own);
    }
    free(matrix);
}
