// presage: problem conv2d
// presage: entry conv2d
// presage: tune THREADS = 1, 2, 4
// presage: tune BLOCK = 1, 8, 1000000
//
// Adds one tap's multiple of the shifted image to BLOCK rows of the output before it turns to the next tap.

static int min(int a, int b) { return a < b ? a : b; }

void conv2d(const float *x, const float *weight, float *y, int n, int c, int h, int w, int o, int r, int s) {
    int rows = h - r + 1, cols = w - s + 1;
#pragma omp parallel for collapse(2) num_threads(THREADS)
    for (int image = 0; image < n; image++)
        for (int out = 0; out < o; out++)
            for (int first = 0; first < rows; first += BLOCK) {
                int count = min(BLOCK, rows - first);
                float *restrict result = y + (((long)image * o + out) * rows + first) * cols;
                for (long e = 0; e < (long)count * cols; e++) result[e] = 0.0f;
                for (int tap = 0; tap < c * r * s; tap++) {
                    float factor = weight[(long)out * c * r * s + tap];
                    int in = tap / (r * s), u = tap / s % r, v = tap % s;
                    const float *source = x + (((long)image * c + in) * h + first + u) * w + v;
                    for (int p = 0; p < count; p++)
#pragma omp simd
                        for (int q = 0; q < cols; q++) result[(long)p * cols + q] += factor * source[(long)p * w + q];
                }
            }
}
