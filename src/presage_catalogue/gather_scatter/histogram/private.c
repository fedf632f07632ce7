// presage: problem histogram
// presage: entry histogram
// presage: tune THREADS = 1, 2, 4
// presage: tune SHARED = 0, 1
// presage: tune COPIES = 1, 2, 4, 8
// presage: tune RUNS = 0, 1
// presage: tune COUNTER = int32_t, int64_t
// presage: where SHARED == 0 or (COPIES == 1 and COUNTER == "int64_t")
// presage: where RUNS == 0 or COPIES <= 4
//
// SHARED lets the threads add to one table with atomic operations; otherwise each has COPIES tables of its own, so
// that equal neighbours do not wait for each other's store. RUNS looks first whether the next STEP elements are all
// alike, and then adds them at once. COUNTER is the type of a private count.
#include <stdint.h>
#include <stdlib.h>
#include <omp.h>

#define STEP 16

#if SHARED
#define TABLE int64_t
#else
#define TABLE COUNTER
#endif

static inline void add(TABLE *bin, int amount) {
#if SHARED
#pragma omp atomic
#endif
    *bin += amount;
}

static inline int alike(const int32_t *x) {
    int32_t differences = 0;
#pragma omp simd reduction(| : differences)
    for (int e = 0; e < STEP; e++) differences |= x[e] ^ x[0];
    return differences == 0;
}

static void tally(const int32_t *x, TABLE *table, long count, int bins) {
    long i = 0;
    for (; i + STEP <= count; i += STEP) {
        if (RUNS && alike(x + i))
            add(table + x[i], STEP);
        else
            for (int e = 0; e < STEP; e++) add(table + (long)(e % COPIES) * bins + x[i + e], 1);
    }
    for (; i < count; i++) add(table + x[i], 1);
}

void histogram(const int32_t *x, int64_t *counts, int n, int bins) {
    /* Zero from the start, also where the runtime grants fewer threads than were asked for. */
    TABLE *tables = SHARED ? NULL : calloc((long)THREADS * COPIES * bins, sizeof(TABLE));
#pragma omp parallel num_threads(THREADS)
    {
        int team = omp_get_num_threads(), me = omp_get_thread_num();
        long start = (long)n * me / team, end = (long)n * (me + 1) / team;
#if SHARED
#pragma omp for
        for (int v = 0; v < bins; v++) counts[v] = 0;
        tally(x + start, counts, end - start, bins);
#else
        tally(x + start, tables + (long)me * COPIES * bins, end - start, bins);
#pragma omp barrier
#pragma omp for
        for (int v = 0; v < bins; v++) {
            int64_t sum = 0;
            for (int k = 0; k < THREADS * COPIES; k++) sum += tables[(long)k * bins + v];
            counts[v] = sum;
        }
#endif
    }
    free(tables);
}
