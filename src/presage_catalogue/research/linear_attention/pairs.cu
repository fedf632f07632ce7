// presage: problem linear_attention
// presage: tune BQ = 32, 64, 16
// presage: tune BS = 32, 64, 16
// presage: tune BV = 64, 32
// presage: tune TQ = 4, 2, 8
// presage: tune TV = 2, 4, 1
// presage: tune LAST = 0, 1
// presage: where BQ * BV >= 64 * TQ * TV and BQ * BV <= 512 * TQ * TV and BQ >= 4 * TQ and (LAST == 0 or BS == BQ)
// presage: where BS == BQ or (TQ == 4 and TV == 2) or (BQ == 64 and TQ == 8)
// presage: entry attend
// presage: grid cdiv(length, BQ), cdiv(dv, BV), heads
// presage: block (BQ // TQ) * (BV // TV)
// presage: shared 4 * (BQ * (dk + 1) + BS * (dk + 1) + BQ * (BS + 1))
//
// A block computes BQ tokens and BV columns from all pairs: it goes over the tokens before in blocks of BS, puts their
// scores into shared memory and sums TQ * TV outputs per thread. LAST takes the longest blocks first.

#define THREADS ((BQ / TQ) * (BV / TV))

extern "C" __global__ void __launch_bounds__(THREADS)
attend(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o,
       int heads, int length, int dk, int dv) {
    extern __shared__ float memory[];
    const int pitch = dk + 1, block = LAST ? gridDim.x - 1 - blockIdx.x : blockIdx.x, start = block * BQ;
    float *qs = memory, *ks = qs + BQ * pitch, *scores = ks + BS * pitch;
    const size_t first = (size_t)blockIdx.z * length;
    const int i = threadIdx.x / (BV / TV) * TQ, col = blockIdx.y * BV + threadIdx.x % (BV / TV);
    for (int e = threadIdx.x; e < BQ * dk; e += THREADS)
        qs[e / dk * pitch + e % dk] = start + e / dk < length ? q[(first + start) * dk + e] : 0.0f;
    float sum[TQ][TV] = {};
    for (int from = 0; from < min(start + BQ, length); from += BS) {
        const int tall = min(BS, length - from);
        __syncthreads();
        for (int e = threadIdx.x; e < BS * dk; e += THREADS)
            ks[e / dk * pitch + e % dk] = e / dk < tall ? k[(first + from) * dk + e] : 0.0f;
        __syncthreads();
        for (int e = threadIdx.x; e < BQ / TQ * BS; e += THREADS) {
            const int s = e % BS, r = e / BS * TQ;
            float dot[TQ] = {};
            for (int d = 0; d < dk; d++) {
                const float key = ks[s * pitch + d];
#pragma unroll
                for (int u = 0; u < TQ; u++) dot[u] += qs[(r + u) * pitch + d] * key;
            }
#pragma unroll
            for (int u = 0; u < TQ; u++) scores[(r + u) * (BS + 1) + s] = from + s <= start + r + u ? dot[u] : 0.0f;
        }
        __syncthreads();
        for (int s = 0; s < tall; s++) {
#pragma unroll
            for (int w = 0; w < TV; w++) {
                const float value = v[(first + from + s) * dv + min(col + w * (BV / TV), dv - 1)];
#pragma unroll
                for (int u = 0; u < TQ; u++) sum[u][w] += scores[(i + u) * (BS + 1) + s] * value;
            }
        }
    }
#pragma unroll
    for (int u = 0; u < TQ; u++)
#pragma unroll
        for (int w = 0; w < TV; w++)
            if (start + i + u < length && col + w * (BV / TV) < dv)
                o[(first + start + i + u) * dv + col + w * (BV / TV)] = sum[u][w];
}
