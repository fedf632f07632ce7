// presage: problem gdn_chunk_fwd_h
// presage: tune BV = 32, 16, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune TT = 4, 2, 8
// presage: tune STAGED = 1, 0
// presage: tune PAD = 4, 0
// presage: where THREADS * TT * 4 >= 16 * BV and THREADS <= 16 * BV and THREADS * TT >= BV and (STAGED == 1 or PAD == 4)
// presage: entry recur
// presage: grid cdiv(dv, BV), heads
// presage: block THREADS
// presage: shared 4 * ((dk + 64) * BV + STAGED * 128 * (dk + PAD) + 64)
//
// A block keeps BV columns of the state and of the chunk's new values in shared memory, and with STAGED the chunk's keys
// too, in rows of dk + PAD. A thread computes TT elements of a column at a time.

extern "C" __global__ void __launch_bounds__(THREADS)
recur(const float *__restrict__ k, const float *__restrict__ w, const float *__restrict__ u,
      const float *__restrict__ g, float *__restrict__ h, float *__restrict__ v_new, int heads, int chunks, int dk,
      int dv) {
    extern __shared__ float memory[];
    float *state = memory, *kept = state + dk * BV, *weight = kept + 64 * BV, *ws = weight + 64;
    const int pitch = STAGED ? dk + PAD : dk;
    float *ks = ws + 64 * pitch;
    const int head = blockIdx.y, x = threadIdx.x % BV, y = threadIdx.x / BV, col = blockIdx.x * BV + x;
    const int tall = THREADS / BV;
    for (int d = y; d < dk; d += tall) state[d * BV + x] = 0.0f;
    for (int c = 0; c < chunks; c++) {
        const size_t first = (size_t)(head * chunks + c) * 64;
        const float *wc = w + first * dk, *kc = k + first * dk;
        __syncthreads();
        if (threadIdx.x < 64) weight[threadIdx.x] = expf(g[first + 63] - g[first + threadIdx.x]);
        if (STAGED)
            for (int e = threadIdx.x; e < 64 * dk; e += THREADS) {
                ws[e / dk * pitch + e % dk] = wc[e];
                ks[e / dk * pitch + e % dk] = kc[e];
            }
        if (col < dv)
            for (int d = y; d < dk; d += tall) h[((size_t)(head * chunks + c) * dk + d) * dv + col] = state[d * BV + x];
        __syncthreads();
        const float *left = STAGED ? ws : wc, *keys = STAGED ? ks : kc;
        for (int t = y * TT; t < 64; t += tall * TT) {
            float sum[TT] = {};
            for (int d = 0; d < dk; d++) {
                const float s = state[d * BV + x];
#pragma unroll
                for (int i = 0; i < TT; i++) sum[i] += left[(t + i) * pitch + d] * s;
            }
#pragma unroll
            for (int i = 0; i < TT; i++) {
                const size_t at = (first + t + i) * dv + min(col, dv - 1);
                const float value = u[at] - sum[i];
                if (col < dv) v_new[at] = value;
                kept[(t + i) * BV + x] = value * weight[t + i];
            }
        }
        __syncthreads();
        const float decay = expf(g[first + 63]);
        for (int d = y * TT; d < dk; d += tall * TT) {
            float sum[TT] = {};
            for (int t = 0; t < 64; t++) {
                const float s = kept[t * BV + x];
#pragma unroll
                for (int i = 0; i < TT; i++) sum[i] += keys[t * pitch + min(d + i, dk - 1)] * s;
            }
#pragma unroll
            for (int i = 0; i < TT; i++)
                if (d + i < dk) state[(d + i) * BV + x] = state[(d + i) * BV + x] * decay + sum[i];
        }
    }
}
