// presage: problem tiny_scale
// presage: entry tiny_scale
// presage: tune STEP = 1, 2, 4, 8, 16, 32
void tiny_scale(const float *x, float *y, int n) {
    for (int from = 0; from < n; from += STEP)
        for (int i = from; i < n && i < from + STEP; i++) y[i] = 3.0f * x[i];
}
