// presage: problem rmsnorm
// presage: entry rmsnorm
#include <math.h>

void rmsnorm(const float *x, const float *weight, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        float squares = 0.0f;
        for (int c = 0; c < cols; c++) squares += in[c] * in[c];
        for (int c = 0; c < cols; c++) out[c] = in[c] / sqrtf(squares / cols + 1e-6f) * weight[c];
    }
}
