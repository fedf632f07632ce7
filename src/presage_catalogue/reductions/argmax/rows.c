// presage: problem argmax
// presage: entry argmax
// presage: tune THREADS = 1, 2, 4
// presage: tune KIND = 0, 1, 2, 3
// presage: tune BLOCK = 16, 32, 64, 512
// presage: where KIND != 0 or BLOCK == 16
// presage: where KIND != 1 or BLOCK <= 64
// presage: where KIND != 3 or BLOCK == 16
//
// KIND 0 finds the maximum, then the first element equal to it; 1 keeps BLOCK lanes of maxima with their positions;
// 2 finds the first block of BLOCK elements that holds the maximum and searches only there; 3 keeps the maximum and
// its position together, which no compiler can spread over lanes.
#include <stdint.h>

static inline float largest(const float *in, int n) {
    float max = in[0];
#pragma omp simd reduction(max : max)
    for (int i = 0; i < n; i++) max = in[i] > max ? in[i] : max;
    return max;
}

/* The first position of a value that is known to occur. */
static inline int position(const float *in, float value) {
    int at = 0;
    while (in[at] != value) at++;
    return at;
}

#if KIND == 0
static int find(const float *in, int n) { return position(in, largest(in, n)); }
#elif KIND == 1
static int find(const float *in, int n) {
    if (n < BLOCK) return position(in, largest(in, n));
    float max[BLOCK];
    int at[BLOCK];
    for (int l = 0; l < BLOCK; l++) max[l] = in[l], at[l] = l;
    int i = BLOCK;
    for (; i + BLOCK <= n; i += BLOCK) {
#pragma omp simd
        for (int l = 0; l < BLOCK; l++) {
            int more = in[i + l] > max[l];
            max[l] = more ? in[i + l] : max[l];
            at[l] = more ? i + l : at[l];
        }
    }
    float top = max[0];
    int best = at[0];
    for (int l = 1; l < BLOCK; l++)
        if (max[l] > top || (max[l] == top && at[l] < best)) top = max[l], best = at[l];
    for (; i < n; i++)
        if (in[i] > top) top = in[i], best = i;
    return best;
}
#elif KIND == 2
static int find(const float *in, int n) {
    float top = in[0];
    int start = 0;
    for (int i = 0; i < n; i += BLOCK) {
        float max = largest(in + i, i + BLOCK <= n ? BLOCK : n - i);
        if (max > top) top = max, start = i;
    }
    return start + position(in + start, top);
}
#else
static int find(const float *in, int n) {
    float top = in[0];
    int best = 0;
    for (int i = 1; i < n; i++)
        if (in[i] > top) top = in[i], best = i;
    return best;
}
#endif

void argmax(const float *x, int64_t *y, int rows, int cols) {
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) y[r] = find(x + (long)r * cols, cols);
}
