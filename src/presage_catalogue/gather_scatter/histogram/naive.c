// presage: problem histogram
// presage: entry histogram
#include <stdint.h>

void histogram(const int32_t *x, int64_t *counts, int n, int bins) {
    for (int v = 0; v < bins; v++) counts[v] = 0;
    for (int i = 0; i < n; i++) counts[x[i]]++;
}
