/* Prints the machine's peaks as JSON: memory bandwidth at several footprints, and multiply-adds. Best of many tries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float lanes __attribute__((vector_size(64)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static volatile float sink;

/* Reads every byte of a slice; eight accumulators hide the latency of the additions. */
static void read_slice(const lanes *p, long n) {
    lanes s[8];
    memset(s, 0, sizeof s);
    for (long i = 0; i + 8 <= n; i += 8)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) s[j] += p[i + j];
    sink = s[0][0] + s[1][0] + s[2][0] + s[3][0] + s[4][0] + s[5][0] + s[6][0] + s[7][0];
}

static double bandwidth(float *memory, long bytes, int threads, int copy) {
    double best = 0;
    long repeats = (64 << 20) / bytes + 1;
    long slice = bytes / threads / 128 * 64;
    for (int attempt = 0; attempt < 12; attempt++) {
        double start = now();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int t = 0; t < threads; t++) {
            char *base = (char *)memory + t * 2 * slice;
            for (long r = 0; r < repeats; r++) {
                if (copy) memcpy(base + slice, base, slice);
                else read_slice((const lanes *)base, 2 * slice / (long)sizeof(lanes));
                __asm__ volatile("" ::: "memory");
            }
        }
        double rate = 2.0 * slice * threads * repeats / (now() - start);
        if (rate > best) best = rate;
    }
    return best;
}

static double multiply_adds(int threads) {
    double best = 0;
    const long steps = 400000;
    for (int attempt = 0; attempt < 12; attempt++) {
        double start = now();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int t = 0; t < threads; t++) {
            lanes a[12], x, y;
            for (int j = 0; j < 16; j++) x[j] = 1.0f + 1e-7f * t, y[j] = 1e-9f * j;
            for (int j = 0; j < 12; j++) a[j] = x;
            for (long i = 0; i < steps; i++)
#pragma GCC unroll 12
                for (int j = 0; j < 12; j++) a[j] = a[j] * x + y;
            for (int j = 0; j < 12; j++) sink = a[j][0];
        }
        double rate = 2.0 * 16 * 12 * steps * threads / (now() - start);
        if (rate > best) best = rate;
    }
    return best;
}

static double moved(float *memory, long bytes, int threads) {
    double read = bandwidth(memory, bytes, threads, 0), copied = bandwidth(memory, bytes, threads, 1);
    return read > copied ? read : copied;
}

/* peaks THREADS: everything. peaks THREADS BYTES: the bandwidth at this footprint, or the arithmetic where that is 0. */
int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    long least = 16 << 10, largest = 128L << 20;
    float *memory = aligned_alloc(64, largest);
    if (!memory) return 1;
    memset(memory, 0, largest);
    if (argc > 2) {
        long bytes = atol(argv[2]);
        if (bytes == 0) printf("{\"flops\": %.6g}\n", multiply_adds(threads));
        if (bytes == 0) return 0;
        bytes = bytes < least ? least : bytes > largest ? largest : bytes;
        printf("{\"bandwidth\": {\"%ld\": %.6g}}\n", bytes, moved(memory, bytes, threads));
        return 0;
    }
    printf("{\"flops\": %.6g, \"bandwidth\": {", multiply_adds(threads));
    for (long bytes = least; bytes <= largest; bytes *= 2)
        printf("%s\"%ld\": %.6g", bytes > least ? ", " : "", bytes, moved(memory, bytes, threads));
    printf("}}\n");
    return 0;
}
