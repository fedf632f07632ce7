// presage: problem cross_entropy
// presage: entry cross_entropy
#include <math.h>
#include <stdint.h>

void cross_entropy(const float *logits, const int64_t *targets, float *loss, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *in = logits + (long)r * cols;
        float max = in[0];
        for (int c = 1; c < cols; c++)
            if (in[c] > max) max = in[c];
        float sum = 0.0f;
        for (int c = 0; c < cols; c++) sum += expf(in[c] - max);
        loss[r] = logf(sum) + max - in[targets[r]];
    }
}
