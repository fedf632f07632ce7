// presage: problem tiny_scale
// presage: entry tiny_scale
void tiny_scale(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 3.0f * x[i];
}
