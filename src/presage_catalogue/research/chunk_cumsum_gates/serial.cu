// presage: problem chunk_cumsum_gates
// presage: tune THREADS = 128, 32, 64, 256
// presage: tune AHEAD = 16, 64, 4, 1
// presage: tune HINT = 0, 1
// presage: tune SUM = float, double, half
// presage: where (SUM != 'half' or (THREADS == 128 and HINT == 0)) and (SUM != 'double' or (HINT == 0 and AHEAD != 4))
// presage: entry sums
// presage: grid cdiv(cdiv(length, 64) * heads, THREADS), batch
// presage: block THREADS
//
// A thread adds up one head's chunk, AHEAD tokens of which it reads before it adds any; neighbours take neighbouring
// heads and then chunks. HINT marks the data as not needed again; SUM is what the running sum is kept in.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(THREADS)
sums(const float *__restrict__ g, float *__restrict__ y, int batch, int length, int heads) {
    const int at = blockIdx.x * THREADS + threadIdx.x, first = at / heads * 64;
    if (first >= length) return;
    const size_t start = ((size_t)blockIdx.y * length + first) * heads + at % heads;
    const int end = min(64, length - first);
    SUM sum = (SUM)0.0f;
    for (int t = 0; t < end; t += AHEAD) {
        float v[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const float *from = g + start + (size_t)min(t + u, end - 1) * heads;
            v[u] = HINT ? __ldcs(from) : *from;
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (t + u >= end) break;
            sum = sum + (SUM)v[u];
            float *to = y + start + (size_t)(t + u) * heads;
            if (HINT) __stcs(to, (float)sum);
            else *to = (float)sum;
        }
    }
}
