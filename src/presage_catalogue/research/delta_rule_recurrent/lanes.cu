// presage: problem delta_rule_recurrent
// presage: tune LANES = 32, 16, 8, 4
// presage: tune COLS = 2, 1, 4, 8
// presage: tune THREADS = 64, 32, 128, 256
// presage: tune ONCE = 0, 1
// presage: tune SIZE = 128, 64
// presage: where (SIZE // LANES) * COLS <= 64 and COLS * 32 >= LANES and (SIZE == 128 or (COLS == 2 and ONCE == 0))
// presage: entry recur
// presage: grid cdiv(dv, COLS * THREADS // LANES), heads
// presage: block THREADS
//
// LANES threads share COLS columns of the state, in registers, with room for SIZE rows. The sums over a column are
// added up across the lanes; ONCE computes both sums before the state changes: q S' = q S + (q . k) value.

#define SLICES (SIZE / LANES)

__device__ float lanes_sum(float v) {
#pragma unroll
    for (int by = LANES / 2; by; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS)
recur(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
      const float *__restrict__ beta, const float *__restrict__ g, float *__restrict__ o, int heads, int length, int dk,
      int dv) {
    const int lane = threadIdx.x % LANES, col = (blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES) * COLS;
    const float scale = 1.0f / sqrtf((float)dk);
    float state[SLICES][COLS] = {};
    for (int t = 0; t < length; t++) {
        const size_t at = (size_t)blockIdx.y * length + t;
        const float decay = expf(g[at]), rate = beta[at];
        float key[SLICES], query[SLICES], seen[COLS] = {}, out[COLS] = {}, both = 0.0f;
#pragma unroll
        for (int i = 0; i < SLICES; i++) {
            const int d = lane + i * LANES;
            key[i] = d < dk ? k[at * dk + d] : 0.0f;
            query[i] = d < dk ? q[at * dk + d] : 0.0f;
            if (ONCE) both += key[i] * query[i];
        }
        if (ONCE) both = lanes_sum(both);
#pragma unroll
        for (int j = 0; j < COLS; j++) {
#pragma unroll
            for (int i = 0; i < SLICES; i++) {
                state[i][j] *= decay;
                seen[j] += key[i] * state[i][j];
                if (ONCE) out[j] += query[i] * state[i][j];
            }
            seen[j] = lanes_sum(seen[j]);
            if (ONCE) out[j] = lanes_sum(out[j]);
        }
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            const float value = rate * (v[at * dv + min(col + j, dv - 1)] - seen[j]);
#pragma unroll
            for (int i = 0; i < SLICES; i++) {
                state[i][j] += key[i] * value;
                if (!ONCE) out[j] += query[i] * state[i][j];
            }
            out[j] = ONCE ? out[j] + both * value : lanes_sum(out[j]);
            if (lane == j % LANES && col + j < dv) o[at * dv + col + j] = out[j] * scale;
        }
    }
}
