// presage: entry conv2d
// presage: tune THREADS = 1, 2, 4
// presage: tune OB = 2, 4, 8
// presage: tune NV = 1, 2, 4
// presage: where OB * NV <= 16
//
// OB output channels of a run of output pixels are held in registers while all taps are added: each shifted load
// of the image serves OB channels.

$lanes$
#define RUN (NV * LANES)
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static int min(int a, int b) { return a < b ? a : b; }

/* Channels past the last one are read from the last one, and their results dropped. */
static inline void run(const float *x, const float *weight, float *y, int channels, int pixels, long plane, int c,
                       int h, int w, int r, int s) {
    const float *factor[OB];
    vec sum[OB][NV];
    for (int i = 0; i < OB; i++) {
        factor[i] = weight + (long)min(i, channels - 1) * c * r * s;
        for (int k = 0; k < NV; k++) sum[i][k] = (vec){0};
    }
    long tap = 0;
    for (int in = 0; in < c; in++)
        for (int u = 0; u < r; u++) {
            const float *source = x + ((long)in * h + u) * w;
            for (int v = 0; v < s; v++, tap++) {
                vec value[NV];
                for (int k = 0; k < NV; k++) value[k] = *(const vec *)(source + v + k * LANES);
                for (int i = 0; i < OB; i++)
                    for (int k = 0; k < NV; k++) sum[i][k] += factor[i][tap] * value[k];
            }
        }
    if (channels == OB && pixels == RUN) {
        for (int i = 0; i < OB; i++)
            for (int k = 0; k < NV; k++) *(vec *)(y + i * plane + k * LANES) = sum[i][k];
        return;
    }
    float whole[OB * RUN];
    for (int i = 0; i < OB; i++)
        for (int k = 0; k < NV; k++) *(vec *)(whole + i * RUN + k * LANES) = sum[i][k];
    for (int i = 0; i < channels; i++)
        for (int q = 0; q < pixels; q++) y[i * plane + q] = whole[i * RUN + q];
}

static void plain(const float *x, const float *weight, float *y, int channels, int pixels, long plane, int c, int h,
                  int w, int r, int s) {
    for (int i = 0; i < channels; i++)
        for (int q = 0; q < pixels; q++) {
            float sum = 0.0f;
            for (int in = 0; in < c; in++)
                for (int u = 0; u < r; u++)
                    for (int v = 0; v < s; v++)
                        sum += x[((long)in * h + u) * w + q + v] * weight[(((long)i * c + in) * r + u) * s + v];
            y[i * plane + q] = sum;
        }
}

void conv2d(const float *x, const float *weight, float *y, int n, int c, int h, int w, int o, int r, int s) {
    int rows = h - r + 1, cols = w - s + 1;
    long plane = (long)rows * cols;
#pragma omp parallel for collapse(3) num_threads(THREADS)
    for (int image = 0; image < n; image++)
        for (int out = 0; out < o; out += OB)
            for (int p = 0; p < rows; p++)
                for (int q = 0; q < cols; q += RUN) {
                    const float *source = x + ((long)image * c * h + p) * w + q;
                    const float *factors = weight + (long)out * c * r * s;
                    float *result = y + ((long)image * o + out) * plane + (long)p * cols + q;
                    int channels = min(OB, o - out), pixels = min(RUN, cols - q);
                    /* A run past its row's end reads the next row for nothing, but must not leave the array. */
                    long end = (((long)image * c + c - 1) * h + p + r - 1) * w + q + s - 1 + RUN;
                    if (end <= (long)n * c * h * w)
                        run(source, factors, result, channels, pixels, plane, c, h, w, r, s);
                    else
                        plain(source, factors, result, channels, pixels, plane, c, h, w, r, s);
                }
}
