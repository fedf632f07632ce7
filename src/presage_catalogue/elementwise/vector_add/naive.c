// presage: problem vector_add
// presage: entry vector_add

void vector_add(const float *x, const float *y, float *z, int n) {
    for (int i = 0; i < n; i++) z[i] = x[i] + y[i];
}
