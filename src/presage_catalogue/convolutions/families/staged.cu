// presage: entry $entry$
// presage: tune OUT = 8, 4, 16
// presage: tune PIXELS = 4, 1, 2, 8
$tiles$
// presage: tune STAGE = 1, 4
// presage: tune PAD = 0, 1
// presage: where TW * TH >= 32 * PIXELS and TW * TH <= 512 * PIXELS and OUT * PIXELS <= 64
// presage: grid n * cdiv(o, OUT) * $depth$ * cdiv($height$, TH) * cdiv($width$, TW)
// presage: block TW * TH // PIXELS
// presage: shared $staged$
//
// A block computes TH by TW pixels of OUT channels, a thread PIXELS of them, all channels. STAGE input channels at a time
// come into shared memory, the part of the image that the pixels need, in rows that are PAD longer, and the weights.

$macros$
#define TAPS (KD * KH * KW)
#define THREADS (TW * TH / PIXELS)
#define TALL ((TH - 1) * SH + (KH - 1) * DH + 1)
#define WIDE ((TW - 1) * SW + (KW - 1) * DW + 1)
#define PITCH (WIDE + PAD)

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ float patch[];
    float *weights = patch + STAGE * KD * TALL * PITCH;
    $sizes$
    int block = blockIdx.x;
    const int across = (ow + TW - 1) / TW, down = (oh + TH - 1) / TH, groups = (o + OUT - 1) / OUT;
    const int q = block % across * TW, p = (block /= across) % down * TH, depth = (block /= down) % od;
    const int first = (block /= od) % groups * OUT;
    const size_t image = block / groups;

    float sum[OUT][PIXELS] = {};
    for (int start = 0; start < c; start += STAGE) {
        __syncthreads(); // the last channels have been used
        for (int i = threadIdx.x; i < STAGE * KD * TALL * WIDE; i += THREADS) {
            const int col = i % WIDE, row = i / WIDE % TALL, t = i / WIDE / TALL % KD, channel = start + i / WIDE / TALL / KD;
            const bool inside = channel < c && p * SH + row < h && q * SW + col < w;
            const size_t plane = (image * c + channel) * d + depth * SD + t * DD;
            patch[i / WIDE * PITCH + col] = inside ? x[(plane * h + p * SH + row) * w + q * SW + col] : 0.0f;
        }
        // Channels change fastest, so that a thread reads the weights of all of them side by side.
        for (int i = threadIdx.x; i < STAGE * OUT * TAPS; i += THREADS) {
            const int k = i % OUT, tap = i / OUT % TAPS, channel = start + i / OUT / TAPS;
            const bool inside = channel < c && first + k < o;
            weights[i] = inside ? weight[((size_t)(first + k) * c + channel) * TAPS + tap] : 0.0f;
        }
        __syncthreads();
        for (int channel = 0; channel < STAGE; channel++) {
#pragma unroll
            for (int tap = 0; tap < TAPS; tap++) {
                const int t = tap / (KH * KW), u = tap / KW % KH * DH, v = tap % KW * DW;
                const float *from = patch + ((channel * KD + t) * TALL + u) * PITCH + v;
                const float *by = weights + (channel * TAPS + tap) * OUT;
                float pixel[PIXELS];
#pragma unroll
                for (int i = 0; i < PIXELS; i++) {
                    const int mine = threadIdx.x + i * THREADS;
                    pixel[i] = from[mine / TW * SH * PITCH + mine % TW * SW];
                }
#pragma unroll
                for (int k = 0; k < OUT; k++)
#pragma unroll
                    for (int i = 0; i < PIXELS; i++) sum[k][i] += pixel[i] * by[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < OUT; k++)
#pragma unroll
        for (int i = 0; i < PIXELS; i++) {
            const int mine = threadIdx.x + i * THREADS, row = p + mine / TW, col = q + mine % TW, out = first + k;
            const float value = sum[k][i];
            if (out < o && row < oh && col < ow) y[(((image * o + out) * od + depth) * oh + row) * ow + col] = $finish$;
        }
}
