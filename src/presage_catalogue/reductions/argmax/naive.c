// presage: problem argmax
// presage: entry argmax
#include <stdint.h>

void argmax(const float *x, int64_t *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *in = x + (long)r * cols;
        int best = 0;
        for (int c = 1; c < cols; c++)
            if (in[c] > in[best]) best = c;
        y[r] = best;
    }
}
