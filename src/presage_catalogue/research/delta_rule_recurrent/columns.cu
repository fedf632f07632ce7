// presage: problem delta_rule_recurrent
// presage: tune THREADS = 32, 64, 128
// presage: tune KEEP = 64, 128, 32, 0
// presage: tune TOKENS = 8, 1, 16
// presage: tune PARTS = 1, 2, 4
// presage: where PARTS * THREADS <= 256
// presage: entry recur
// presage: grid cdiv(dv, THREADS), heads
// presage: block THREADS, PARTS
// presage: shared 4 * (2 * TOKENS * dk + 2 * PARTS * THREADS + dk * THREADS)
//
// A thread for each column of the state and each of PARTS parts of its rows; a part's first KEEP rows are in registers,
// the others in shared memory. The keys and queries of TOKENS tokens are staged in shared memory.

extern "C" __global__ void __launch_bounds__(THREADS * PARTS)
recur(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
      const float *__restrict__ beta, const float *__restrict__ g, float *__restrict__ o, int heads, int length, int dk,
      int dv) {
    extern __shared__ float memory[];
    float *keys = memory, *queries = keys + TOKENS * dk, *partial = queries + TOKENS * dk;
    float *rest = partial + 2 * PARTS * THREADS + threadIdx.x;
    const int x = threadIdx.x, part = threadIdx.y, col = blockIdx.x * THREADS + x, thread = part * THREADS + x;
    const int height = (dk + PARTS - 1) / PARTS, first = part * height, last = min(first + height, dk);
    const float scale = 1.0f / sqrtf((float)dk);
    float state[KEEP + 1] = {};
    for (int d = first + KEEP; d < last; d++) rest[d * THREADS] = 0.0f;
    for (int t = 0; t < length; t++) {
        const size_t at = (size_t)blockIdx.y * length + t;
        if (t % TOKENS == 0) {
            __syncthreads();
            for (int e = thread; e < min(TOKENS, length - t) * dk; e += THREADS * PARTS)
                keys[e] = k[at * dk + e], queries[e] = q[at * dk + e];
            __syncthreads();
        }
        const float *key = keys + t % TOKENS * dk + first, *query = queries + t % TOKENS * dk + first;
        const float decay = expf(g[at]);
        float seen = 0.0f, out = 0.0f;
#pragma unroll
        for (int d = 0; d < KEEP; d++)
            if (first + d < last) state[d] *= decay, seen += key[d] * state[d];
        for (int d = KEEP; first + d < last; d++) {
            const float s = rest[(first + d) * THREADS] * decay;
            rest[(first + d) * THREADS] = s, seen += key[d] * s;
        }
        if (PARTS > 1) {
            partial[thread] = seen;
            __syncthreads();
            seen = 0.0f;
            for (int other = 0; other < PARTS; other++) seen += partial[other * THREADS + x];
        }
        const float value = beta[at] * (v[at * dv + min(col, dv - 1)] - seen);
#pragma unroll
        for (int d = 0; d < KEEP; d++)
            if (first + d < last) state[d] += key[d] * value, out += query[d] * state[d];
        for (int d = KEEP; first + d < last; d++) {
            const float s = rest[(first + d) * THREADS] + key[d] * value;
            rest[(first + d) * THREADS] = s, out += query[d] * s;
        }
        if (PARTS > 1) {
            partial[(PARTS + part) * THREADS + x] = out;
            __syncthreads();
            out = 0.0f;
            for (int other = 0; other < PARTS; other++) out += partial[(PARTS + other) * THREADS + x];
        }
        if (part == 0 && col < dv) o[at * dv + col] = out * scale;
    }
}
