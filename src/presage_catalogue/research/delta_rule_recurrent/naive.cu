// presage: problem delta_rule_recurrent
// presage: entry recur
// presage: grid cdiv(dv, 64), heads
// presage: block 64
// presage: scratch states = 4 * heads * dk * dv

// A thread for each column of the state, which lies in memory.
extern "C" __global__ void recur(const float *q, const float *k, const float *v, const float *beta, const float *g,
                                 float *o, int heads, int length, int dk, int dv, float *states) {
    const int j = blockIdx.x * 64 + threadIdx.x, head = blockIdx.y;
    if (j >= dv) return;
    float *state = states + (size_t)head * dk * dv + j;
    for (int d = 0; d < dk; d++) state[d * dv] = 0.0f;
    for (int t = 0; t < length; t++) {
        const size_t at = (size_t)head * length + t;
        const float decay = expf(g[at]);
        float seen = 0.0f, out = 0.0f;
        for (int d = 0; d < dk; d++) {
            state[d * dv] *= decay;
            seen += k[at * dk + d] * state[d * dv];
        }
        const float value = beta[at] * (v[at * dv + j] - seen);
        for (int d = 0; d < dk; d++) {
            state[d * dv] += k[at * dk + d] * value;
            out += q[at * dk + d] * state[d * dv];
        }
        o[at * dv + j] = out / sqrtf((float)dk);
    }
}
