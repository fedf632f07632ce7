// presage: problem vector_add
// presage: entry vector_add
// presage: tune THREADS = 1, 2, 4
// presage: tune WIDTH = 4, 8, 16
// presage: tune CHUNK = 0, 16, 4096
// presage: tune PREFETCH = 0, 512
//
// Memory sets the pace. CHUNK 0 gives each thread one piece of the vectors, else pieces of that many elements in
// turn; PREFETCH asks for that many elements ahead, though the hardware may well have done so already.

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

static void add(const float *restrict x, const float *restrict y, float *restrict z, long from, long to) {
    long i = from;
    for (; i + WIDTH <= to; i += WIDTH) {
#if PREFETCH
        __builtin_prefetch(x + i + PREFETCH);
        __builtin_prefetch(y + i + PREFETCH);
        __builtin_prefetch(z + i + PREFETCH, 1);
#endif
        *(vec *)(z + i) = *(const vec *)(x + i) + *(const vec *)(y + i);
    }
    for (; i < to; i++) z[i] = x[i] + y[i];
}

void vector_add(const float *x, const float *y, float *z, int n) {
#if CHUNK
    long size = CHUNK;
#else
    /* Whole cache lines, so that no two threads write to the same one. */
    long size = ((n + THREADS - 1L) / THREADS + 15) / 16 * 16;
#endif
#pragma omp parallel for schedule(static, 1) num_threads(THREADS)
    for (long from = 0; from < n; from += size) add(x, y, z, from, from + size < n ? from + size : n);
}
