// presage: problem maxpool2d
// presage: entry maxpool2d

void maxpool2d(const float *x, float *y, int n, int c, int h, int w, int window, int stride) {
    int rows = (h - window) / stride + 1, cols = (w - window) / stride + 1;
    for (int plane = 0; plane < n * c; plane++) {
        const float *in = x + (long)plane * h * w;
        for (int p = 0; p < rows; p++) {
            for (int q = 0; q < cols; q++) {
                float max = in[(long)p * stride * w + q * stride];
                for (int u = 0; u < window; u++)
                    for (int v = 0; v < window; v++) {
                        float value = in[(long)(p * stride + u) * w + q * stride + v];
                        if (value > max) max = value;
                    }
                y[((long)plane * rows + p) * cols + q] = max;
            }
        }
    }
}
