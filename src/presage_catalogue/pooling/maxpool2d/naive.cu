// presage: problem maxpool2d
// presage: entry maxpool2d
// presage: grid cdiv(n * c * ((h - window) // stride + 1) * ((w - window) // stride + 1), 256)
// presage: block 256

extern "C" __global__ void maxpool2d(const float *x, float *y, int n, int c, int h, int w, int window, int stride) {
    const int rows = (h - window) / stride + 1, cols = (w - window) / stride + 1;
    const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= (size_t)n * c * rows * cols) return;
    const int q = at % cols, p = at / cols % rows;
    const float *corner = x + (at / cols / rows * h + p * stride) * w + q * stride;
    float largest = -INFINITY;
    for (int u = 0; u < window; u++)
        for (int v = 0; v < window; v++) largest = fmaxf(largest, corner[u * w + v]);
    y[at] = largest;
}
