// presage: problem layernorm_gate_project
// presage: tune ROWS = 32, 16, 64
// presage: tune THREADS = 128, 256, 64
// presage: tune COLS = 1, 2, 4
// presage: tune PASSES = 2, 1
// presage: tune EXP = expf, __expf
// presage: tune STEP = 4, 1
// presage: where ROWS != 16 or THREADS != 256
// presage: where (EXP == 'expf' or STEP == 4) and (PASSES == 2 or COLS != 4)
// presage: entry project
// presage: grid cdiv(rows, ROWS)
// presage: block THREADS
// presage: shared 4 * ROWS * (c + 4)
//
// One launch: a block normalises ROWS rows into shared memory, a warp for each, and multiplies them with both matrices,
// which come straight from cache. A thread holds COLS columns of ROWS / 8 rows; STEP terms are taken at a time. PASSES is
// how often a row is read for its variance.

#define GROUPS 8
#define HEIGHT (ROWS / GROUPS)
#define ACROSS (THREADS / GROUPS)

__device__ float warp_sum(float v) {
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS)
project(const float *__restrict__ x, const float *__restrict__ mask, const float *__restrict__ gamma,
        const float *__restrict__ beta, const float *__restrict__ w_proj, const float *__restrict__ w_gate,
        float *__restrict__ y, int rows, int c, int hidden) {
    extern __shared__ __align__(16) float normal[];
    const int first = blockIdx.x * ROWS, lane = threadIdx.x % 32, pitch = (c + 3) / 4 * 4;
    for (int r = threadIdx.x / 32; r < ROWS; r += THREADS / 32) {
        const float *from = x + (size_t)min(first + r, rows - 1) * c;
        float sum = 0.0f, square = 0.0f;
        for (int p = lane; p < c; p += 32) sum += from[p], square += from[p] * from[p];
        const float mean = warp_sum(sum) / c;
        if (PASSES == 2) {
            square = 0.0f;
            for (int p = lane; p < c; p += 32) square += (from[p] - mean) * (from[p] - mean);
        }
        float variance = warp_sum(square) / c;
        if (PASSES == 1) variance = fmaxf(variance - mean * mean, 0.0f);
        const float scale = rsqrtf(variance + 1e-5f);
        for (int p = lane; p < pitch; p += 32)
            normal[r * pitch + p] = p < c ? (from[p] - mean) * scale * gamma[p] + beta[p] : 0.0f;
    }
    __syncthreads();
    const int group = threadIdx.x / ACROSS;
    for (int start = threadIdx.x % ACROSS; start < hidden; start += ACROSS * COLS) {
        float value[HEIGHT][COLS] = {}, gate[HEIGHT][COLS] = {};
        for (int p = 0; p < pitch; p += STEP) {
#pragma unroll
            for (int u = 0; u < STEP; u++) {
                const int q = min(p + u, c - 1);
#pragma unroll
                for (int k = 0; k < COLS; k++) {
                    const int j = min(start + k * ACROSS, hidden - 1);
                    const float a = w_proj[q * hidden + j], b = w_gate[q * hidden + j];
#pragma unroll
                    for (int r = 0; r < HEIGHT; r++) {
                        const float n = normal[(group * HEIGHT + r) * pitch + p + u];
                        value[r][k] += n * a, gate[r][k] += n * b;
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < HEIGHT; r++)
#pragma unroll
            for (int k = 0; k < COLS; k++) {
                const int row = first + group * HEIGHT + r, j = start + k * ACROSS;
                if (row < rows && j < hidden)
                    y[(size_t)row * hidden + j] = mask[row] * value[r][k] / (1.0f + EXP(-gate[r][k]));
            }
    }
}
