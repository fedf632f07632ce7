// presage: problem swiglu_mlp
// presage: tune ROWS = 16, 8, 32
// presage: tune THREADS = 256, 128, 512
// presage: tune BF = 64, 32, 128
// presage: tune PARTS = 1, 4, 16
// presage: tune GROUPS = 4, 2, 1
// presage: where BF * GROUPS <= THREADS and ROWS >= 4 * GROUPS and ROWS <= 16 * GROUPS
// presage: entry fused
// presage: grid cdiv(tokens, ROWS), PARTS
// presage: block THREADS
// presage: shared 4 * ROWS * (2 * d + BF)
// presage: entry combine
// presage: grid cdiv(tokens * d, 256)
// presage: block 256
// presage: scratch partial = 4 * PARTS * tokens * d
//
// A block holds ROWS tokens and their results in shared memory and goes through one of PARTS parts of the hidden columns,
// BF at a time, which never leave it. A thread takes the rows of one of GROUPS groups for its columns. A second launch
// adds the parts up.

#define HEIGHT (ROWS / GROUPS)
#define ACROSS (THREADS / GROUPS)

extern "C" __global__ void __launch_bounds__(THREADS)
fused(const float *__restrict__ x, const float *__restrict__ w1, const float *__restrict__ w3,
      const float *__restrict__ w2, float *__restrict__ y, int tokens, int d, int f, float *__restrict__ partial) {
    extern __shared__ float memory[];
    float *xs = memory, *out = xs + ROWS * d, *hidden = out + ROWS * d;
    const int first = blockIdx.x * ROWS, row = threadIdx.x / ACROSS * HEIGHT, col = threadIdx.x % ACROSS;
    const int wide = (f + PARTS - 1) / PARTS, begin = blockIdx.y * wide, end = min(begin + wide, f);
    for (int e = threadIdx.x; e < ROWS * d; e += THREADS) {
        xs[e] = first + e / d < tokens ? x[(size_t)first * d + e] : 0.0f;
        out[e] = 0.0f;
    }
    for (int start = begin; start < end; start += BF) {
        __syncthreads();
        for (int j = col; j < BF; j += ACROSS) {
            float a[HEIGHT] = {}, b[HEIGHT] = {};
            if (start + j < end)
                for (int p = 0; p < d; p++) {
                    const float u = w1[(size_t)p * f + start + j], v = w3[(size_t)p * f + start + j];
#pragma unroll
                    for (int r = 0; r < HEIGHT; r++) {
                        const float value = xs[(row + r) * d + p];
                        a[r] += value * u, b[r] += value * v;
                    }
                }
#pragma unroll
            for (int r = 0; r < HEIGHT; r++) hidden[(row + r) * BF + j] = a[r] / (1.0f + expf(-a[r])) * b[r];
        }
        __syncthreads();
        for (int j = col; j < d; j += ACROSS) {
            float sum[HEIGHT] = {};
            for (int p = 0; p < min(BF, end - start); p++) {
                const float w = w2[(size_t)(start + p) * d + j];
#pragma unroll
                for (int r = 0; r < HEIGHT; r++) sum[r] += hidden[(row + r) * BF + p] * w;
            }
#pragma unroll
            for (int r = 0; r < HEIGHT; r++) out[(row + r) * d + j] += sum[r];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * d; e += THREADS)
        if (first + e / d < tokens) partial[((size_t)blockIdx.y * tokens + first) * d + e] = out[e];
}

extern "C" __global__ void combine(const float *x, const float *w1, const float *w3, const float *w2, float *y,
                                   int tokens, int d, int f, const float *partial) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= tokens * d) return;
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part++) sum += partial[(size_t)part * tokens * d + at];
    y[at] = sum;
}
