// presage: entry $entry$
// presage: tune LANES = 4, 2, 8, 32
// presage: tune THREADS = 256, 64, 512
// presage: tune UNROLL = 1, 4
// presage: tune SPLIT = 0, 1
// presage: tune ACC = float, half
// presage: where ACC == "float" or (SPLIT == 0 and UNROLL == 1)
// presage: grid cdiv(rows, THREADS // LANES)
// presage: block THREADS
//
// LANES threads share a row. SPLIT 0 deals the entries out one by one, 1 gives every lane a stretch of them; with as many
// rows as lanes side by side, this decides whether neighbours read neighbouring entries. The lanes' sums, of type ACC,
// meet by shuffles.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int r = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    float sums[UNROLL] = {};
    ACC sum = (ACC)0.0f;
    if (r < rows) {
        const int begin = $entry_begin$, end = $entry_end$, step = $entry_step$;
        const int count = (end - begin + step - 1) / step, share = (count + LANES - 1) / LANES;
        const int last = SPLIT ? min(count, (lane + 1) * share) : count, stride = SPLIT ? 1 : LANES;
        int k = SPLIT ? lane * share : lane;
        for (; k + (UNROLL - 1) * stride < last; k += UNROLL * stride)
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                const int j = begin + (k + u * stride) * step;
                if (UNROLL > 1) sums[u] += values[j] * x[columns[j]];
                else sum += (ACC)(values[j] * x[columns[j]]);
            }
        for (; k < last; k += stride) sum += (ACC)(values[begin + k * step] * x[columns[begin + k * step]]);
    }
    float total = (float)sum;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) total += sums[u];
    for (int offset = LANES / 2; offset > 0; offset /= 2) total += __shfl_xor_sync(0xffffffffu, total, offset);
    if (r < rows && lane == 0) y[r] = total;
}
