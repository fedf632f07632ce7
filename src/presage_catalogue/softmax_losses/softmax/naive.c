// presage: problem softmax
// presage: entry softmax
#include <math.h>

void softmax(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        float *out = y + (long)r * cols;
        float max = in[0];
        for (int c = 1; c < cols; c++)
            if (in[c] > max) max = in[c];
        float sum = 0.0f;
        for (int c = 0; c < cols; c++) sum += expf(in[c] - max);
        for (int c = 0; c < cols; c++) out[c] = expf(in[c] - max) / sum;
    }
}
