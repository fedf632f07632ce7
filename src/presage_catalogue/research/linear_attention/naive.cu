// presage: problem linear_attention
// presage: entry recur
// presage: grid cdiv(dv, 64), heads
// presage: block 64
// presage: scratch states = 4 * heads * dk * dv

// A thread for each column of the running state, which lies in memory.
extern "C" __global__ void recur(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
                                 float *__restrict__ o, int heads, int length, int dk, int dv,
                                 float *__restrict__ states) {
    const int j = blockIdx.x * 64 + threadIdx.x;
    if (j >= dv) return;
    float *__restrict__ state = states + (size_t)blockIdx.y * dk * dv + j;
    for (int d = 0; d < dk; d++) state[d * dv] = 0.0f;
    for (int t = 0; t < length; t++) {
        const size_t at = (size_t)blockIdx.y * length + t;
        const float value = v[at * dv + j];
        float sum = 0.0f;
        for (int d = 0; d < dk; d++) {
            const float s = state[d * dv] + k[at * dk + d] * value;
            state[d * dv] = s;
            sum += q[at * dk + d] * s;
        }
        o[at * dv + j] = sum;
    }
}
