// presage: entry $entry$
// presage: tune THREADS = 1, 2, 4
// presage: tune LANES = 16, 1, 4, 8, 32
// presage: tune SPLIT = 0, 1
// presage: where SPLIT == 0 or (THREADS > 1 and LANES == 16)
//
// LANES states side by side take turns with the elements of a row. SPLIT shares out each row's columns between the
// threads instead of the rows, at the price of a barrier a row.
#include <math.h>

$fold$

static State stretch(const float *const *from, long first, long end) {
    State lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = empty();
    long i = first;
    for (; i + LANES <= end; i += LANES)
#pragma GCC ivdep
        for (int l = 0; l < LANES; l++) {
            float in[$inputs$];
            for (int k = 0; k < $inputs$; k++) in[k] = from[k][i + l];
            include(&lane[l], in, i + l);
        }
    for (; i < end; i++) {
        float in[$inputs$];
        for (int k = 0; k < $inputs$; k++) in[k] = from[k][i];
        include(&lane[0], in, i);
    }
    for (int l = 1; l < LANES; l++) merge(&lane[0], &lane[l]);
    return lane[0];
}

void $entry$($row_arguments$) {
    const float *const all[] = {$in_pointers$};
#if SPLIT
    const long share = (cols + THREADS - 1L) / THREADS;
    for (long r = 0; r < rows; r++) {
        State part[THREADS];
#pragma omp parallel for num_threads(THREADS)
        for (int t = 0; t < THREADS; t++) {
            const float *from[$inputs$];
            for (int k = 0; k < $inputs$; k++) from[k] = all[k] + r * cols;
            const long end = (t + 1) * share < cols ? (t + 1) * share : cols;
            part[t] = stretch(from, t * share, end);
        }
        for (int t = 1; t < THREADS; t++) merge(&part[0], &part[t]);
        y[r] = finish(&part[0], cols);
    }
#else
#pragma omp parallel for num_threads(THREADS)
    for (long r = 0; r < rows; r++) {
        const float *from[$inputs$];
        for (int k = 0; k < $inputs$; k++) from[k] = all[k] + r * cols;
        const State s = stretch(from, 0, cols);
        y[r] = finish(&s, cols);
    }
#endif
}
