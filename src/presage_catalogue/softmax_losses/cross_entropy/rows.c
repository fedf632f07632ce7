// presage: problem cross_entropy
// presage: entry cross_entropy
// presage: tune THREADS = 1, 2, 4
// presage: tune EXP = 0, 1
// presage: tune KIND = 0, 1, 2
// presage: tune BLOCK = 16, 64, 512
// presage: where KIND != 0 or BLOCK == 16
// presage: where KIND != 1 or BLOCK <= 64
// presage: where KIND != 2 or BLOCK >= 64
//
// EXP 1 replaces expf by a polynomial the compiler can vectorise. KIND 0 reads a row for the maximum and again for the
// sum; 1 keeps BLOCK lanes of running maxima and sums, at two exponentials for each element; 2 goes by blocks of
// BLOCK elements that are still in the cache for their sum, and rescales once a block.
#include <math.h>
#include <stdint.h>

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

/* The sum of exponentials is sum * exp(max), with no term above 1 in sum. */
struct partial {
    float max, sum;
};

static inline struct partial two_passes(const float *in, int n) {
    float max = in[0], sum = 0.0f;
#pragma omp simd reduction(max : max)
    for (int i = 0; i < n; i++) max = in[i] > max ? in[i] : max;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += EXPONENTIAL(in[i] - max);
    return (struct partial){max, sum};
}

static inline struct partial merge(struct partial a, struct partial b) {
    float max = a.max > b.max ? a.max : b.max;
    return (struct partial){max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
}

#if KIND == 0
static struct partial of_row(const float *in, int n) {
    (void)merge;
    return two_passes(in, n);
}
#elif KIND == 1
static struct partial of_row(const float *in, int n) {
    if (n < BLOCK) return two_passes(in, n);
    float max[BLOCK], sum[BLOCK];
    for (int l = 0; l < BLOCK; l++) max[l] = in[l], sum[l] = 1.0f;
    int i = BLOCK;
    for (; i + BLOCK <= n; i += BLOCK) {
#pragma omp simd
        for (int l = 0; l < BLOCK; l++) {
            float v = in[i + l], bigger = v > max[l] ? v : max[l];
            sum[l] = sum[l] * EXPONENTIAL(max[l] - bigger) + EXPONENTIAL(v - bigger);
            max[l] = bigger;
        }
    }
    struct partial row = {max[0], sum[0]};
    for (int l = 1; l < BLOCK; l++) row = merge(row, (struct partial){max[l], sum[l]});
    return i < n ? merge(row, two_passes(in + i, n - i)) : row;
}
#else
static struct partial of_row(const float *in, int n) {
    struct partial row = two_passes(in, n < BLOCK ? n : BLOCK);
    int i = BLOCK;
    for (; i + BLOCK <= n; i += BLOCK) row = merge(row, two_passes(in + i, BLOCK));
    return i < n ? merge(row, two_passes(in + i, n - i)) : row;
}
#endif

void cross_entropy(const float *logits, const int64_t *targets, float *loss, int rows, int cols) {
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        const float *in = logits + (long)r * cols;
        struct partial row = of_row(in, cols);
        loss[r] = logf(row.sum) + row.max - in[targets[r]];
    }
}
