// presage: problem linear_attention
// presage: tune LANES = 16, 32, 8, 4
// presage: tune COLS = 2, 1, 4
// presage: tune THREADS = 64, 32, 128
// presage: tune SIZE = 128, 64
// presage: tune AHEAD = 1, 4
// presage: where (SIZE // LANES) * COLS <= 64 and (SIZE == 128 or COLS == 2) and (AHEAD == 1 or LANES >= 16)
// presage: entry recur
// presage: grid cdiv(dv, COLS * THREADS // LANES), heads
// presage: block THREADS
//
// The running state, token by token: LANES threads share COLS columns of it, in registers, with room for SIZE rows, and
// add up their parts of an output by shuffles. The loads of AHEAD tokens go together.

#define SLICES (SIZE / LANES)

extern "C" __global__ void __launch_bounds__(THREADS)
recur(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o,
      int heads, int length, int dk, int dv) {
    const int lane = threadIdx.x % LANES, col = (blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES) * COLS;
    float state[SLICES][COLS] = {};
    for (int start = 0; start < length; start += AHEAD) {
        float key[AHEAD][SLICES], query[AHEAD][SLICES], value[AHEAD][COLS];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const size_t at = (size_t)blockIdx.y * length + min(start + a, length - 1);
#pragma unroll
            for (int i = 0; i < SLICES; i++) {
                const int d = lane + i * LANES;
                key[a][i] = d < dk ? k[at * dk + d] : 0.0f;
                query[a][i] = d < dk ? q[at * dk + d] : 0.0f;
            }
#pragma unroll
            for (int j = 0; j < COLS; j++) value[a][j] = v[at * dv + min(col + j, dv - 1)];
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
#pragma unroll
            for (int j = 0; j < COLS; j++) {
                float out = 0.0f;
#pragma unroll
                for (int i = 0; i < SLICES; i++) {
                    state[i][j] += key[a][i] * value[a][j];
                    out += query[a][i] * state[i][j];
                }
#pragma unroll
                for (int by = LANES / 2; by; by /= 2) out += __shfl_xor_sync(0xffffffffu, out, by);
                if (lane == j && start + a < length && col + j < dv)
                    o[((size_t)blockIdx.y * length + start + a) * dv + col + j] = out;
            }
    }
}
