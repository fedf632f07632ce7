// presage: problem softmax
// presage: entry softmax
// presage: tune THREADS = 1, 2, 4
// presage: tune EXP = 0, 1
// presage: tune STORE = 1, 0
// presage: tune ONLINE = 0, 1
// presage: where not (ONLINE == 1 and STORE == 1)
//
// Rows are independent. EXP 1 replaces expf by a polynomial the compiler can vectorise; STORE keeps the
// exponentials in y instead of computing them twice; ONLINE finds maximum and sum in one pass over the row.
#include <math.h>

/* exp(v) for v <= 0. The clamp is on integers: a float comparison would keep the loop from being vectorised. */
static inline float exp_poly(float v) {
    union { float f; int i; } u = {v};
    int low = (int)0xC2AE0000; /* -87.0f; negative floats order like unsigned integers */
    u.i = (unsigned)u.i > (unsigned)low ? low : u.i;
    float n = (float)(int)(u.f * 1.44269504f - 0.5f);
    float f = (u.f - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 1.98756915e-4f;
    p = p * f + 1.39819995e-3f;
    p = p * f + 8.33345205e-3f;
    p = p * f + 4.16657962e-2f;
    p = p * f + 1.66666655e-1f;
    p = p * f + 5.00000001e-1f;
    p = p * f * f + f + 1.0f;
    union { int i; float f; } scale = {((int)n + 127) << 23};
    return p * scale.f;
}

#if EXP
#define EXPONENTIAL exp_poly
#else
#define EXPONENTIAL expf
#endif
#define LANES 16

static float row_max(const float *in, int cols) {
    float max = in[0];
#pragma omp simd reduction(max : max)
    for (int c = 0; c < cols; c++) max = in[c] > max ? in[c] : max;
    return max;
}

/* One pass, LANES running maxima and sums side by side, merged at the end. */
static void online(const float *in, int cols, float *max, float *sum) {
    float m[LANES], s[LANES];
    for (int l = 0; l < LANES; l++) m[l] = -INFINITY, s[l] = 0.0f;
    int c = 0;
    for (; c + LANES <= cols; c += LANES) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            float v = in[c + l], bigger = v > m[l] ? v : m[l];
            s[l] = s[l] * EXPONENTIAL(m[l] - bigger) + EXPONENTIAL(v - bigger);
            m[l] = bigger;
        }
    }
    *max = row_max(in + c - (c == cols), cols - c + (c == cols));
    for (int l = 0; l < LANES; l++) *max = m[l] > *max ? m[l] : *max;
    *sum = 0.0f;
    for (; c < cols; c++) *sum += EXPONENTIAL(in[c] - *max);
    for (int l = 0; l < LANES; l++) *sum += s[l] * EXPONENTIAL(m[l] - *max);
}

void softmax(const float *x, float *y, int rows, int cols) {
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        float max, sum = 0.0f;
#if ONLINE
        online(in, cols, &max, &sum);
#else
        max = row_max(in, cols);
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < cols; c++) {
            float e = EXPONENTIAL(in[c] - max);
#if STORE
            out[c] = e;
#endif
            sum += e;
        }
#endif
        float scale = 1.0f / sum;
#pragma omp simd
        for (int c = 0; c < cols; c++) {
#if STORE
            out[c] *= scale;
#else
            out[c] = EXPONENTIAL(in[c] - max) * scale;
#endif
        }
    }
}
