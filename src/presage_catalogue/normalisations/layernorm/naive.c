// presage: problem layernorm
// presage: entry layernorm
#include <math.h>

void layernorm(const float *x, const float *weight, const float *bias, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        float mean = 0.0f;
        for (int c = 0; c < cols; c++) mean += in[c];
        mean /= cols;
        float variance = 0.0f;
        for (int c = 0; c < cols; c++) variance += (in[c] - mean) * (in[c] - mean);
        variance /= cols;
        for (int c = 0; c < cols; c++) out[c] = (in[c] - mean) / sqrtf(variance + 1e-5f) * weight[c] + bias[c];
    }
}
