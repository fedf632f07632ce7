// presage: entry $entry$
// presage: tune THREADS = 1, 2, 4
// presage: tune LANES = 1, 4, 16
// presage: tune BLOCK = 16, 256
// presage: where LANES > 1 or BLOCK == 16
//
// Rows are shared out between THREADS threads. A row is read with LANES totals side by side, each of BLOCK neighbours
// in turn, and the lanes' totals are joined at the end.
#include <math.h>
#include <stdint.h>
#include <stddef.h>
#define EXP expf

$prelude$

static inline State row_total(const Arguments *a, size_t start, int extent) {
    State lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = identity();
    int c = 0;
    for (; c + LANES * BLOCK <= extent; c += LANES * BLOCK)
        for (int k = 0; k < BLOCK; k++)
#pragma omp simd
            for (int l = 0; l < LANES; l++) lane[l] = included(lane[l], a, start + c + k * LANES + l);
    for (; c < extent; c++) lane[0] = included(lane[0], a, start + c);
    for (int l = 1; l < LANES; l++) lane[0] = joined(lane[0], lane[l]);
    return lane[0];
}

void $entry$($parameters$) {
    const Arguments a = {$names$};
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        const Row row = row_of(&a, r);
        const size_t start = (size_t)r * cols;
        const State s = row_total(&a, start, row.extent);
        $finish_c$
    }
}
