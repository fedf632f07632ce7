// presage: problem conv2d
// presage: entry conv2d

void conv2d(const float *x, const float *weight, float *y, int n, int c, int h, int w, int o, int r, int s) {
    int rows = h - r + 1, cols = w - s + 1;
    for (int image = 0; image < n; image++)
        for (int out = 0; out < o; out++)
            for (int p = 0; p < rows; p++)
                for (int q = 0; q < cols; q++) {
                    float sum = 0.0f;
                    for (int in = 0; in < c; in++)
                        for (int u = 0; u < r; u++)
                            for (int v = 0; v < s; v++)
                                sum += x[(((long)image * c + in) * h + p + u) * w + q + v] *
                                       weight[(((long)out * c + in) * r + u) * s + v];
                    y[(((long)image * o + out) * rows + p) * cols + q] = sum;
                }
}
