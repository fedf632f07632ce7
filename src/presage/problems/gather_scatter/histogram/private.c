// presage: problem histogram
// presage: entry histogram
// presage: tune THREADS = 1, 2, 4
// presage: tune SHARED = 0, 1
// presage: tune COPIES = 1, 2, 4, 8
// presage: tune COMPARE = 0, 1
// presage: tune COUNTER = int32_t, int64_t
// presage: where SHARED == 0 or (COPIES == 1 and COMPARE == 0 and COUNTER == "int64_t")
// presage: where COMPARE == 0 or COPIES <= 2
//
// SHARED lets the threads add to one table with atomic operations; otherwise each has COPIES tables of its own, so
// that neighbouring equal elements do not wait for each other's store. COMPARE counts few bins without any table, one
// vector comparison per bin. COUNTER is the type of a private count.
#include <stdint.h>
#include <stdlib.h>
#include <omp.h>

#define FEW 32
#define BLOCK 4096

#if SHARED
static void count(const int32_t *x, int64_t *counts, long start, long end) {
    for (long i = start; i < end; i++) {
#pragma omp atomic
        counts[x[i]]++;
    }
}
#else
/* Blocks keep the elements in the first-level cache while every bin looks at them. */
static void compare(const int32_t *x, COUNTER *table, long start, long end, int bins) {
    for (long i = start; i < end; i += BLOCK) {
        int size = end - i < BLOCK ? end - i : BLOCK;
        for (int v = 0; v < bins; v++) {
            int32_t found = 0;
#pragma omp simd reduction(+ : found)
            for (int e = 0; e < size; e++) found += x[i + e] == v;
            table[v] += found;
        }
    }
}

static void tally(const int32_t *x, COUNTER *table, long start, long end, int bins) {
    long i = start;
    for (; i + COPIES <= end; i += COPIES)
        for (int k = 0; k < COPIES; k++) table[(long)k * bins + x[i + k]]++;
    for (; i < end; i++) table[x[i]]++;
}
#endif

void histogram(const int32_t *x, int64_t *counts, int n, int bins) {
#if !SHARED
    COUNTER *tables = calloc((long)THREADS * COPIES * bins, sizeof(COUNTER));
    /* A table that was never touched is zero. */
#endif
#pragma omp parallel num_threads(THREADS)
    {
        int team = omp_get_num_threads(), me = omp_get_thread_num();
        long start = (long)n * me / team, end = (long)n * (me + 1) / team;
#if SHARED
#pragma omp for
        for (int v = 0; v < bins; v++) counts[v] = 0;
        count(x, counts, start, end);
#else
        COUNTER *own = tables + (long)me * COPIES * bins;
        if (COMPARE && bins <= FEW)
            compare(x, own, start, end, bins);
        else
            tally(x, own, start, end, bins);
#pragma omp barrier
#pragma omp for
        for (int v = 0; v < bins; v++) {
            int64_t sum = 0;
            for (int k = 0; k < THREADS * COPIES; k++) sum += tables[(long)k * bins + v];
            counts[v] = sum;
        }
#endif
    }
#if !SHARED
    free(tables);
#endif
}
