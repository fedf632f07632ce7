// presage: entry $entry$
// presage: tune THREADS = 1, 2, 4
// presage: tune WIDTH = 64, 1, 16, 256, 1024
//
// WIDTH columns at a time, row by row, with a state for each of them.
#include <math.h>

$fold$

void $entry$($column_arguments$) {
    const float *const from[] = {$in_pointers$};
#pragma omp parallel for num_threads(THREADS)
    for (long first = 0; first < cols; first += WIDTH) {
        const int width = first + WIDTH < cols ? WIDTH : (int)(cols - first);
        State s[WIDTH];
        for (int l = 0; l < WIDTH; l++) s[l] = empty();
        for (long r = 0; r < rows; r++)
#pragma GCC ivdep
            for (int l = 0; l < width; l++) {
                float in[$inputs$];
                for (int k = 0; k < $inputs$; k++) in[k] = from[k][r * cols + first + l];
                include(&s[l], in, r);
            }
        for (int l = 0; l < width; l++) y[first + l] = finish(&s[l], rows);
    }
}
