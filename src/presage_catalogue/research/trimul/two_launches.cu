// presage: problem trimul
// presage: tune BI = 4, 2, 8
// presage: tune BJ = 4, 8, 2
// presage: tune WIDE = 64, 32, 128
// presage: tune PARTS = 2, 4, 1
// presage: tune HEIGHT = 4, 2, 8
// presage: where BI * BJ >= 8 and BI * BJ <= 32 and WIDE * PARTS >= 64 and WIDE * PARTS <= 256
// presage: where PARTS != 1 or HEIGHT == 4
// presage: entry project
// presage: grid cdiv(n * n, HEIGHT * 4)
// presage: block 128
// presage: shared 16 * HEIGHT * c
// presage: entry combine
// presage: grid cdiv(n, BI), cdiv(n, BJ)
// presage: block WIDE, PARTS
// presage: shared 4 * BI * BJ * (PARTS * hidden + c)
// presage: scratch sides = 8 * n * n * hidden
//
// The first launch normalises 4 * HEIGHT pairs and projects them. A block of the second holds BI * BJ sums of all
// channels, WIDE of them at a time and each cut into PARTS along k, normalises them in shared memory and writes the
// result, with the output's gate.

#define ARGUMENTS                                                                                                       \
    const float *__restrict__ z, const float *__restrict__ mask, const float *__restrict__ gamma,                       \
        const float *__restrict__ beta, const float *__restrict__ w_proj, const float *__restrict__ w_gate,             \
        const float *__restrict__ w_out_gate, const float *__restrict__ gamma_out, const float *__restrict__ beta_out,  \
        const float *__restrict__ w_out, float *__restrict__ y, int n, int c, int hidden, float *__restrict__ sides

__device__ float warp_sum(float v) {
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}
__device__ void layer_norm(const float *from, float *to, const float *gamma, const float *beta, int width) {
    const int lane = (threadIdx.y * blockDim.x + threadIdx.x) % 32;
    float sum = 0.0f, square = 0.0f;
    for (int p = lane; p < width; p += 32) sum += from[p];
    const float mean = warp_sum(sum) / width;
    for (int p = lane; p < width; p += 32) square += (from[p] - mean) * (from[p] - mean);
    const float scale = rsqrtf(warp_sum(square) / width + 1e-5f);
    for (int p = lane; p < width; p += 32) to[p] = (from[p] - mean) * scale * gamma[p] + beta[p];
}

extern "C" __global__ void __launch_bounds__(128) project(ARGUMENTS) {
    extern __shared__ float x[];
    const int first = blockIdx.x * HEIGHT * 4, warp = threadIdx.x / 32, width = 2 * hidden;
    for (int r = warp * HEIGHT; r < (warp + 1) * HEIGHT; r++)
        layer_norm(z + (size_t)min(first + r, n * n - 1) * c, x + r * c, gamma, beta, c);
    __syncthreads();
    for (int h = threadIdx.x; h < width; h += 128)
        for (int group = 0; group < 4; group++) {
            float value[HEIGHT] = {}, gate[HEIGHT] = {};
            for (int p = 0; p < c; p++) {
                const float a = w_proj[p * width + h], b = w_gate[p * width + h];
#pragma unroll
                for (int r = 0; r < HEIGHT; r++) {
                    const float v = x[(group * HEIGHT + r) * c + p];
                    value[r] += v * a, gate[r] += v * b;
                }
            }
#pragma unroll
            for (int r = 0; r < HEIGHT; r++) {
                const int pair = first + group * HEIGHT + r;
                if (pair < n * n) sides[(size_t)pair * width + h] = mask[pair] * value[r] / (1.0f + expf(-gate[r]));
            }
        }
}

extern "C" __global__ void __launch_bounds__(WIDE * PARTS) combine(ARGUMENTS) {
    extern __shared__ float memory[];
    float *sums = memory, *x = memory + BI * BJ * PARTS * hidden;
    const int i0 = blockIdx.x * BI, j0 = blockIdx.y * BJ, part = threadIdx.y, width = 2 * hidden;
    const int thread = part * WIDE + threadIdx.x;
    for (int h = threadIdx.x; h < hidden; h += WIDE) {
        float sum[BI][BJ] = {};
        for (int k = part; k < n; k += PARTS) {
            float r[BJ];
#pragma unroll
            for (int j = 0; j < BJ; j++) r[j] = sides[(min(j0 + j, n - 1) * n + k) * width + hidden + h];
#pragma unroll
            for (int i = 0; i < BI; i++) {
                const float l = sides[(min(i0 + i, n - 1) * n + k) * width + h];
#pragma unroll
                for (int j = 0; j < BJ; j++) sum[i][j] += l * r[j];
            }
        }
#pragma unroll
        for (int i = 0; i < BI; i++)
#pragma unroll
            for (int j = 0; j < BJ; j++) sums[(part * BI * BJ + i * BJ + j) * hidden + h] = sum[i][j];
    }
    __syncthreads();
    for (int e = thread; e < BI * BJ * hidden; e += WIDE * PARTS) {
        float sum = sums[e];
        for (int other = 1; other < PARTS; other++) sum += sums[other * BI * BJ * hidden + e];
        sums[e] = sum;
    }
    __syncthreads();
    for (int pair = thread / 32; pair < BI * BJ; pair += WIDE * PARTS / 32) {
        const int i = min(i0 + pair / BJ, n - 1), j = min(j0 + pair % BJ, n - 1);
        layer_norm(sums + pair * hidden, sums + pair * hidden, gamma_out, beta_out, hidden);
        layer_norm(z + (size_t)(i * n + j) * c, x + pair * c, gamma, beta, c);
    }
    __syncthreads();
    for (int e = thread; e < BJ * c; e += WIDE * PARTS) {
        const int j = e / c, q = e % c;
        float value[BI] = {}, gate[BI] = {};
        for (int p = 0; p < hidden; p++) {
            const float w = w_out[p * c + q];
#pragma unroll
            for (int i = 0; i < BI; i++) value[i] += sums[(i * BJ + j) * hidden + p] * w;
        }
        for (int p = 0; p < c; p++) {
            const float w = w_out_gate[p * c + q];
#pragma unroll
            for (int i = 0; i < BI; i++) gate[i] += x[(i * BJ + j) * c + p] * w;
        }
#pragma unroll
        for (int i = 0; i < BI; i++)
            if (i0 + i < n && j0 + j < n) y[((i0 + i) * n + j0 + j) * c + q] = value[i] / (1.0f + expf(-gate[i]));
    }
}
