// presage: problem cumsum
// presage: entry cumsum
// presage: tune THREADS = 1, 2, 4
// presage: tune SPLIT = 0, 1
// presage: tune SCAN = 0, 1, 2, 3
// presage: tune CHAINS = 4, 8
// presage: tune LANES = 8, 16
// presage: where SCAN >= 2 or CHAINS == 4
// presage: where SCAN == 1 or LANES == 8
// presage: where not (SPLIT == 1 and THREADS == 1)
// presage: where not (SPLIT == 1 and SCAN == 3)
//
// An addition takes several cycles, so one chain of them leaves the core idle. SCAN 0 is that chain; 1 scans LANES
// at once in log2(LANES) steps; 2 cuts a row into CHAINS parts, whose totals a first pass finds; 3 runs CHAINS rows side by side.
// SPLIT cuts each row between the threads in the same two passes; otherwise threads take whole rows.
#include <omp.h>

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int mask __attribute__((vector_size(4 * LANES)));
#ifdef __clang__
#define SHIFTED(v, ...) __builtin_shufflevector((vec){0}, v, __VA_ARGS__)
#else
#define SHIFTED(v, ...) __builtin_shuffle((vec){0}, v, (mask){__VA_ARGS__})
#endif

static inline float total(const float *x, int count) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; i++) sum += x[i];
    return sum;
}

static inline void chain(const float *x, float *y, int count, float sum) {
    for (int i = 0; i < count; i++) y[i] = sum += x[i];
}

static inline void vectors(const float *restrict x, float *restrict y, int count, float sum) {
    int i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec v = *(const vec *)(x + i);
#if LANES == 8
        v += SHIFTED(v, 7, 8, 9, 10, 11, 12, 13, 14);
        v += SHIFTED(v, 6, 7, 8, 9, 10, 11, 12, 13);
        v += SHIFTED(v, 4, 5, 6, 7, 8, 9, 10, 11);
#else
        v += SHIFTED(v, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
        v += SHIFTED(v, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
        v += SHIFTED(v, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27);
        v += SHIFTED(v, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23);
#endif
        *(vec *)(y + i) = v + sum;
        sum += v[LANES - 1];
    }
    chain(x + i, y + i, count - i, sum);
}

/* CHAINS scans of `count` elements, `apart` from one another. */
static inline void side_by_side(const float *restrict x, float *restrict y, int count, long apart, float sum[CHAINS]) {
    float running[CHAINS];
    for (int k = 0; k < CHAINS; k++) running[k] = sum[k];
    for (int i = 0; i < count; i++)
        for (int k = 0; k < CHAINS; k++) y[k * apart + i] = running[k] += x[k * apart + i];
}

static inline void parts(const float *x, float *y, int count, float sum) {
    int part = count / CHAINS;
    float sums[CHAINS];
    for (int k = 0; k < CHAINS; k++) {
        sums[k] = sum;
        sum += total(x + k * part, part);
    }
    side_by_side(x, y, part, part, sums);
    chain(x + CHAINS * part, y + CHAINS * part, count - CHAINS * part, sum);
}

static inline void scan(const float *x, float *y, int count, float sum) {
    /* Blocks stay in the first-level cache between the two passes over their parts. */
    for (int block = 4096; SCAN == 2 && count > block; count -= block, x += block, y += block) {
        parts(x, y, block, sum);
        sum = y[block - 1];
    }
    if (SCAN == 2)
        parts(x, y, count, sum);
    else if (SCAN == 1)
        vectors(x, y, count, sum);
    else
        chain(x, y, count, sum);
}

void cumsum(const float *x, float *y, int rows, int cols) {
#if SPLIT
    float sums[THREADS];
#pragma omp parallel num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        /* The runtime may grant fewer threads than were asked for. */
        int team = omp_get_num_threads(), me = omp_get_thread_num();
        long start = (long)cols * me / team, end = (long)cols * (me + 1) / team;
        const float *in = x + (long)r * cols;
        sums[me] = total(in + start, end - start);
#pragma omp barrier
        float before = 0.0f;
        for (int k = 0; k < me; k++) before += sums[k];
        scan(in + start, y + (long)r * cols + start, end - start, before);
#pragma omp barrier
    }
#elif SCAN == 3
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r += CHAINS) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        if (r + CHAINS <= rows)
            side_by_side(in, out, cols, cols, (float[CHAINS]){0});
        else
            for (int k = 0; k < rows - r; k++) scan(in + (long)k * cols, out + (long)k * cols, cols, 0.0f);
    }
#else
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) scan(x + (long)r * cols, y + (long)r * cols, cols, 0.0f);
#endif
}
