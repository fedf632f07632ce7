// presage: problem moe_gate
// presage: tune TOKENS = 64, 32, 128, 256
// presage: tune WIDE = 32, 64, 16
// presage: tune PAD = 1, 0
// presage: tune EXP = expf, __expf
// presage: tune PASSES = 1, 2
// presage: where TOKENS * WIDE <= 8192 and (EXP == 'expf' or PAD == 1)
// presage: entry gate
// presage: grid cdiv(tokens, TOKENS)
// presage: block TOKENS
//
// A thread for each token. The logits come through shared memory, WIDE experts of the block's tokens at a time, in rows
// of WIDE + PAD, so that neighbours read neighbours. PASSES = 2 finds the best expert and then, in another pass, the
// best of the others.

extern "C" __global__ void __launch_bounds__(TOKENS)
gate(const float *__restrict__ logits, float *__restrict__ weights, int *__restrict__ chosen, int tokens, int experts) {
    __shared__ float tile[TOKENS][WIDE + PAD];
    const int start = blockIdx.x * TOKENS, x = threadIdx.x;
    const int height = min(TOKENS, tokens - start);
    float a = -INFINITY, b = -INFINITY;
    int i = 0, j = 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (int first = 0; first < experts; first += WIDE) {
            const int width = min(WIDE, experts - first);
            __syncthreads();
            for (int e = x; e < TOKENS * WIDE; e += TOKENS)
                if (e / WIDE < height && e % WIDE < width)
                    tile[e / WIDE][e % WIDE] = logits[(size_t)(start + e / WIDE) * experts + first + e % WIDE];
            __syncthreads();
            for (int e = 0; e < width; e++) {
                const float v = tile[x][e];
                if (PASSES == 1) {
                    if (v > a) b = a, j = i, a = v, i = first + e;
                    else if (v > b) b = v, j = first + e;
                } else if (pass == 0) {
                    if (v > a) a = v, i = first + e;
                } else if (v > b && first + e != i) {
                    b = v, j = first + e;
                }
            }
        }
    if (x >= height) return;
    const float q = EXP(b - a);
    ((float2 *)weights)[start + x] = make_float2(1.0f / (1.0f + q), q / (1.0f + q));
    ((int2 *)chosen)[start + x] = make_int2(i, j);
}
