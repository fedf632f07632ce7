// presage: problem layernorm
// presage: entry layernorm
// presage: tune THREADS = 1, 2, 4
// presage: tune KIND = 0, 1, 2, 3
// presage: tune BLOCK = 1, 16, 64, 256
// presage: tune SCALED = 0, 1
// presage: where KIND != 0 or BLOCK == 1
// presage: where KIND != 1 or BLOCK == 1
// presage: where KIND != 2 or BLOCK >= 16
// presage: where KIND != 3 or BLOCK <= 64
//
// KIND 0 reads a row for the mean and again for the variance; 1 finds both in one reading, in double precision since
// the difference of sums cancels; 2 takes mean and squares of BLOCK elements at a time and merges them (Chan); 3 is
// Welford's running mean, in BLOCK lanes. SCALED multiplies the weight by the scale first, and moves the mean into the
// bias.
#include <math.h>

/* The statistics of a stretch: how many, their mean, and the sum of squared distances from it. */
struct moments {
    float count, mean, squares;
};

static inline struct moments merge(struct moments a, struct moments b) {
    float count = a.count + b.count, apart = b.mean - a.mean, share = b.count / count;
    return (struct moments){count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

static inline struct moments two_passes(const float *in, int n) {
    float sum = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += in[i];
    float mean = sum / n;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < n; i++) squares += (in[i] - mean) * (in[i] - mean);
    return (struct moments){n, mean, squares};
}

#if KIND == 0
static struct moments of_row(const float *in, int n) {
    (void)merge;
    return two_passes(in, n);
}
#elif KIND == 1
static struct moments of_row(const float *in, int n) {
    (void)merge, (void)two_passes;
    double sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : sum, squares)
    for (int i = 0; i < n; i++) {
        double v = in[i];
        sum += v;
        squares += v * v;
    }
    double rest = squares - sum * sum / n;
    return (struct moments){n, (float)(sum / n), rest > 0.0 ? (float)rest : 0.0f};
}
#elif KIND == 2
static struct moments of_row(const float *in, int n) {
    struct moments row = two_passes(in, n < BLOCK ? n : BLOCK);
    int i = BLOCK;
    for (; i + BLOCK <= n; i += BLOCK) row = merge(row, two_passes(in + i, BLOCK));
    return i < n ? merge(row, two_passes(in + i, n - i)) : row;
}
#else
static struct moments of_row(const float *in, int n) {
    if (n < BLOCK) return two_passes(in, n);
    float mean[BLOCK], squares[BLOCK];
    for (int l = 0; l < BLOCK; l++) mean[l] = in[l], squares[l] = 0.0f;
    int i = BLOCK;
    for (float count = 2.0f; i + BLOCK <= n; i += BLOCK, count += 1.0f) {
        float share = 1.0f / count;
#pragma omp simd
        for (int l = 0; l < BLOCK; l++) {
            float apart = in[i + l] - mean[l];
            mean[l] += apart * share;
            squares[l] += apart * (in[i + l] - mean[l]);
        }
    }
    struct moments row = {0.0f, 0.0f, 0.0f};
    for (int l = 0; l < BLOCK; l++) row = merge(row, (struct moments){i / BLOCK, mean[l], squares[l]});
    return i < n ? merge(row, two_passes(in + i, n - i)) : row;
}
#endif

void layernorm(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
               int rows, int cols) {
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        struct moments row = of_row(in, cols);
        float mean = row.mean, scale = 1.0f / sqrtf(row.squares / cols + 1e-5f);
#pragma omp simd
        for (int c = 0; c < cols; c++) {
#if SCALED
            float w = weight[c] * scale;
            out[c] = in[c] * w + (bias[c] - mean * w);
#else
            out[c] = (in[c] - mean) * scale * weight[c] + bias[c];
#endif
        }
    }
}
