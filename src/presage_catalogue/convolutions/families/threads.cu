// presage: entry $entry$
// presage: tune OUT = 4, 1, 2, 8, 16
// presage: tune PIXELS = 2, 1, 4
// presage: tune THREADS = 128, 64, 256
// presage: tune ORDER = 0, 1
// presage: tune WEIGHTS = 0, 1, 2
// presage: where (PIXELS > 1 or ORDER == 0) and OUT * PIXELS >= 2 and (WEIGHTS < 2 or ORDER == 0 and THREADS <= 128)
// presage: grid cdiv(n * $area$, THREADS * PIXELS), cdiv(o, OUT)
// presage: block THREADS
// presage: shared (4 if WEIGHTS == 1 else 2) * OUT * c * $taps$ if WEIGHTS else 0
//
// A thread computes PIXELS pixels of OUT channels straight from memory: pixels THREADS apart (ORDER 0) or side by side
// (1). The weights of the block's channels come from memory each time, or once into shared memory (WEIGHTS), in
// float (1) or half precision (2).

#include <cuda_fp16.h>

$macros$
#if WEIGHTS == 2
typedef half Weight;
#else
typedef float Weight;
#endif
#define TAPS (KD * KH * KW)

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ Weight weights[];
    $sizes$
    const int first = blockIdx.y * OUT;
    if (WEIGHTS) {
        for (int i = threadIdx.x; i < OUT * c * TAPS; i += THREADS)
            weights[i] = (Weight)(first + i % OUT < o ? weight[(first + i % OUT) * c * TAPS + i / OUT] : 0.0f);
        __syncthreads();
    }
    const float *from[PIXELS];
    int place[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        int at = ORDER ? (blockIdx.x * THREADS + threadIdx.x) * PIXELS + i
                       : (blockIdx.x * PIXELS + i) * THREADS + threadIdx.x;
        place[i] = at < n * area ? at / area * o * area + at % area : -1;
        at = min(at, n * area - 1);
        from[i] = x + (size_t)(at / area) * c * d * h * w +
                  (at / (ow * oh) % od * SD * h + at / ow % oh * SH) * w + at % ow * SW;
    }
    float sum[OUT][PIXELS] = {};
    for (int channel = 0; channel < c; channel++) {
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            const int offset = ((channel * d + tap / (KH * KW) * DD) * h + tap / KW % KH * DH) * w + tap % KW * DW;
            float pixel[PIXELS];
#pragma unroll
            for (int i = 0; i < PIXELS; i++) pixel[i] = from[i][offset];
#pragma unroll
            for (int k = 0; k < OUT; k++) {
                const float by = WEIGHTS ? (float)weights[(channel * TAPS + tap) * OUT + k]
                                         : weight[(min(first + k, o - 1) * c + channel) * TAPS + tap];
#pragma unroll
                for (int i = 0; i < PIXELS; i++) sum[k][i] += pixel[i] * by;
            }
        }
    }
#pragma unroll
    for (int k = 0; k < OUT; k++)
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const int out = first + k;
            const float value = sum[k][i];
            if (out < o && place[i] >= 0) y[(size_t)place[i] + (size_t)out * area] = $finish$;
        }
}
