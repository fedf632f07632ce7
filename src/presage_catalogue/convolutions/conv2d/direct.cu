// presage: problem conv2d
// presage: entry conv2d
// presage: tune OUT = 8, 4, 16
// presage: tune PIXELS = 4, 2
// presage: tune TH = 8, 16
// presage: tune TW = 32, 16
// presage: tune STAGE = 1, 4
// presage: grid n * cdiv(o, OUT) * cdiv(h - r + 1, TH) * cdiv(w - s + 1, TW)
// presage: block TW * TH // PIXELS
// presage: shared 4 * STAGE * ((TH + r - 1) * (TW + s - 1) + OUT * r * s)
//
// A block computes TH * TW pixels of OUT channels, a thread PIXELS of them below each other, all channels. STAGE input
// channels at a time come into shared memory, the part of the image that the pixels need and the weights.

extern "C" __global__ void __launch_bounds__(TW *TH / PIXELS)
conv2d(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int n, int c, int h, int w,
       int o, int r, int s) {
    extern __shared__ float patch[];
    const int threads = TW * TH / PIXELS, rows = h - r + 1, cols = w - s + 1;
    const int tall = TH + r - 1, wide = TW + s - 1;
    float *weights = patch + STAGE * tall * wide;

    int block = blockIdx.x;
    const int across = (cols + TW - 1) / TW, down = (rows + TH - 1) / TH, groups = (o + OUT - 1) / OUT;
    const int q = block % across * TW, p = (block /= across) % down * TH;
    const int out = (block /= down) % groups * OUT;
    const size_t image = block / groups;
    const int my_q = threadIdx.x % TW, my_p = threadIdx.x / TW * PIXELS;

    float sum[OUT][PIXELS] = {};
    for (int first = 0; first < c; first += STAGE) {
        __syncthreads(); // the last channels have been used
        for (int i = threadIdx.x; i < STAGE * tall * wide; i += threads) {
            const int v = i % wide, u = i / wide % tall, channel = first + i / wide / tall;
            const bool inside = channel < c && p + u < h && q + v < w;
            patch[i] = inside ? x[((image * c + channel) * h + p + u) * w + q + v] : 0.0f;
        }
        // Channels change fastest, so that a thread reads the weights of all of them side by side.
        for (int i = threadIdx.x; i < STAGE * OUT * r * s; i += threads) {
            const int k = i % OUT, tap = i / OUT % (r * s), channel = first + i / OUT / (r * s);
            const bool inside = channel < c && out + k < o;
            weights[i] = inside ? weight[((size_t)(out + k) * c + channel) * r * s + tap] : 0.0f;
        }
        __syncthreads();
        for (int channel = 0; channel < STAGE; channel++) {
            for (int u = 0; u < r; u++) {
                for (int v = 0; v < s; v++) {
                    const float *from = patch + (channel * tall + my_p + u) * wide + my_q + v;
                    const float *by = weights + ((channel * r + u) * s + v) * OUT;
                    float pixel[PIXELS];
#pragma unroll
                    for (int i = 0; i < PIXELS; i++) pixel[i] = from[i * wide];
#pragma unroll
                    for (int k = 0; k < OUT; k++)
#pragma unroll
                        for (int i = 0; i < PIXELS; i++) sum[k][i] += pixel[i] * by[k];
                }
            }
        }
    }
#pragma unroll
    for (int k = 0; k < OUT; k++)
#pragma unroll
        for (int i = 0; i < PIXELS; i++)
            if (out + k < o && p + my_p + i < rows && q + my_q < cols)
                y[((image * o + out + k) * rows + p + my_p + i) * cols + q + my_q] = sum[k][i];
}
