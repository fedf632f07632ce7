// presage: problem conv2d
// presage: entry conv2d
// presage: grid cdiv(n * o * (h - r + 1) * (w - s + 1), 256)
// presage: block 256

extern "C" __global__ void conv2d(const float *x, const float *weight, float *y, int n, int c, int h, int w, int o,
                                  int r, int s) {
    const int rows = h - r + 1, cols = w - s + 1;
    const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= (size_t)n * o * rows * cols) return;
    const int q = at % cols, p = at / cols % rows, k = at / cols / rows % o;
    const size_t i = at / cols / rows / o;
    float sum = 0.0f;
    for (int channel = 0; channel < c; channel++)
        for (int u = 0; u < r; u++)
            for (int v = 0; v < s; v++)
                sum += x[((i * c + channel) * h + p + u) * w + q + v] *
                       weight[(((size_t)k * c + channel) * r + u) * s + v];
    y[at] = sum;
}
