// presage: problem gelu
// presage: entry gelu
// presage: tune THREADS = 1, 2, 4
// presage: tune ERF = 0, 1, 2, 3, 4
// presage: tune LANES = 8, 4, 16
// presage: where ERF != 0 or LANES == 8
//
// ERF 0 is the library's; 1 is Abramowitz and Stegun 7.1.26, with an exponential; 2 a quotient of polynomials; 3 a
// polynomial alone; 4 a table with a cubic around each of its points. The last four are written for LANES at a time.
#include <math.h>

#define SQRT_HALF 0.70710678f

/* min(v, 4) for v >= 0, on integers: a float comparison would keep the loop from being vectorised. */
static inline float at_most_4(float v) {
    union { float f; int i; } u = {v};
    u.i = u.i > 0x40800000 ? 0x40800000 : u.i;
    return u.f;
}

#define POINTS 128
#define STEP (4.0f / POINTS)
struct table {
    float value[POINTS + 1], slope[POINTS + 1];
};

static inline void fill(struct table *table) {
    for (int k = 0; k <= POINTS; k++) {
        float z = k * STEP;
        table->value[k] = erff(z);
        table->slope[k] = 1.12837917f * expf(-z * z);
    }
}

/* exp(v) for -20 <= v <= 0 */
static inline float exp_poly(float v) {
    float n = (float)(int)(v * 1.44269504f - 0.5f);
    float f = (v - n * 0.693145752f) - n * 1.42860677e-6f;
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

/* erf(a / sqrt(2)) for a >= 0; from a / sqrt(2) = 4 on it is 1 in float32. */
static inline float erf_of(float a, const struct table *table) {
    float z = at_most_4(a * SQRT_HALF);
#if ERF == 0
    (void)table;
    return erff(z);
#elif ERF == 1
    (void)table;
    float t = 1.0f / (1.0f + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    return 1.0f - p * t * exp_poly(-z * z);
#elif ERF == 2
    (void)table;
    float s = z * z;
    float p = -2.72614225801306e-10f;
    p = p * s + 2.77068142495902e-08f;
    p = p * s - 2.10102402082508e-06f;
    p = p * s - 5.69250639462346e-05f;
    p = p * s - 7.34990630326855e-04f;
    p = p * s - 2.95459980854025e-03f;
    p = p * s - 1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * s - 2.13374055278905e-04f;
    q = q * s - 1.68282697438203e-03f;
    q = q * s - 7.37332916720468e-03f;
    q = q * s - 1.42647390514189e-02f;
    return z * p / q;
#elif ERF == 3
    (void)table;
    float t = z * z * 0.125f - 1.0f; /* in [-1, 1], where the powers stay small */
    float p = -0.0010745928f;
    p = p * t + 0.00285320474f;
    p = p * t - 0.00212072012f;
    p = p * t + 0.00218519607f;
    p = p * t - 0.00863207331f;
    p = p * t + 0.0165734208f;
    p = p * t - 0.0226876714f;
    p = p * t + 0.0320637573f;
    p = p * t - 0.0456298942f;
    p = p * t + 0.0601250838f;
    p = p * t - 0.0747609213f;
    p = p * t + 0.0901814642f;
    p = p * t - 0.107707245f;
    p = p * t + 0.131676312f;
    p = p * t - 0.176576317f;
    p = p * t + 0.353530987f;
    return z * p;
#else
    int k = (int)(z * (1.0f / STEP) + 0.5f);
    float z0 = (float)k * STEP, d = z - z0;
    /* Taylor: the second and third derivatives are the first times -2 z0 and 4 z0^2 - 2. */
    float cubic = d * (1.0f - d * (z0 - d * (2.0f * z0 * z0 - 1.0f) * (1.0f / 3.0f)));
    return table->value[k] + table->slope[k] * cubic;
#endif
}

void gelu(const float *restrict x, float *restrict y, int n) {
    struct table table;
#if ERF == 4
    fill(&table);
#else
    (void)fill;
#endif
#pragma omp parallel for simd simdlen(LANES) num_threads(THREADS)
    for (int i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        y[i] = 0.5f * (x[i] + a * erf_of(a, &table));
    }
}
