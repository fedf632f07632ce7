// presage: entry $entry$
// presage: tune THREADS = 1, 2, 4
// presage: tune CHUNK = 0, 256, 8192
// presage: tune LANES = 8, 1, 16
$tune_form$
// presage: where FORM == 0 or (CHUNK == 0 and LANES == 8)
//
// CHUNK 0 gives each thread one piece of the arrays, else pieces of that many elements in turn. LANES is the width that
// the loop is vectorised for. FORM 0 is the plain formula, the others are further ways to write it.
#include <math.h>
$helpers$

static void piece($arguments$) {
#pragma omp simd simdlen(LANES)
    for (int i = 0; i < n; i++) {
        $load$
        $forms$
        $store$
    }
}

void $entry$($arguments$) {
#if CHUNK
    const long size = CHUNK;
#else
    /* Whole cache lines, so that no two threads write to the same one. */
    const long size = ((n + THREADS - 1L) / THREADS + 15) / 16 * 16;
#endif
#pragma omp parallel for schedule(static, 1) num_threads(THREADS)
    for (long start = 0; start < n; start += size) {
        const int length = start + size < n ? size : n - start;
        piece($from_start$, length);
    }
}
