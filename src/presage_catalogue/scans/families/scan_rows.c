// presage: entry $entry$
// presage: tune THREADS = 1, 2, 4
// presage: tune CHAINS = 1, 2, 4, 8, 16
//
// Rows are shared out between THREADS threads, each of which scans CHAINS rows side by side: a step of one scan has to
// wait for the step before, but not for the other scans.
#include <math.h>
#include <stddef.h>

$prelude$

void $entry$($parameters$) {
    const Arguments a = {$names$};
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r += CHAINS) {
        const int count = rows - r < CHAINS ? rows - r : CHAINS;
        State s[CHAINS];
        for (int k = 0; k < CHAINS; k++) s[k] = identity();
        for (int c = 0; c < cols; c++)
            for (int k = 0; k < CHAINS; k++) {
                if (k >= count) break;
                const State before = s[k];
                s[k] = joined(before, element(&a, r + k, c));
                $out$[position(&a, r + k, c)] = finished(before, s[k]);
            }
    }
}
