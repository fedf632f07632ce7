// presage: problem gdn_chunk_fwd_h
// presage: entry recur
// presage: grid dv, heads
// presage: block 64
// presage: shared 4 * (dk + 64)

// A block for each column of the state.
extern "C" __global__ void recur(const float *k, const float *w, const float *u, const float *g, float *h, float *v_new,
                                 int heads, int chunks, int dk, int dv) {
    extern __shared__ float state[];
    float *kept = state + dk;
    const int j = blockIdx.x, head = blockIdx.y, t = threadIdx.x;
    for (int d = t; d < dk; d += 64) state[d] = 0.0f;
    for (int c = 0; c < chunks; c++) {
        __syncthreads();
        const int first = (head * chunks + c) * 64;
        for (int d = t; d < dk; d += 64) h[((size_t)(head * chunks + c) * dk + d) * dv + j] = state[d];
        float value = u[(size_t)(first + t) * dv + j];
        for (int d = 0; d < dk; d++) value -= w[(size_t)(first + t) * dk + d] * state[d];
        v_new[(size_t)(first + t) * dv + j] = value;
        kept[t] = value * expf(g[first + 63] - g[first + t]);
        __syncthreads();
        for (int d = t; d < dk; d += 64) {
            float sum = 0.0f;
            for (int s = 0; s < 64; s++) sum += k[(size_t)(first + s) * dk + d] * kept[s];
            state[d] = state[d] * expf(g[first + 63]) + sum;
        }
    }
}
