// presage: problem moe_gate
// presage: tune LANES = 32, 16, 8, 4, 2
// presage: tune THREADS = 256, 128, 64
// presage: tune SOFTMAX = 0, 1
// presage: tune VECTOR = 1, 2
// presage: tune TOKENS = 1, 2, 4
// presage: tune SHIFT = 1, 0
// presage: where (SHIFT == 1 or (SOFTMAX == 1 and VECTOR == 1 and TOKENS == 1 and THREADS == 256)) and (VECTOR == 1 or TOKENS == 1)
// presage: where SOFTMAX == 0 or TOKENS != 4
// presage: entry gate
// presage: grid cdiv(tokens, TOKENS * (THREADS // LANES))
// presage: block THREADS
//
// LANES threads share a token: each finds the two best of its experts, and pairs of two merge by shuffles. SOFTMAX also
// computes the whole softmax, SHIFTed by its maximum or not; else only the two weights. VECTOR reads two logits at a
// time where they are aligned. Each group takes TOKENS tokens, one after the other.

struct Best {
    float a, b;
    int i, j;
};
__device__ void take(Best &best, float v, int e) {
    if (v > best.a) best.b = best.a, best.j = best.i, best.a = v, best.i = e;
    else if (v > best.b) best.b = v, best.j = e;
}

extern "C" __global__ void __launch_bounds__(THREADS)
gate(const float *__restrict__ logits, float *__restrict__ weights, int *__restrict__ chosen, int tokens, int experts) {
    const int lane = threadIdx.x % LANES, group = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    for (int u = 0; u < TOKENS; u++) {
        const int token = group * TOKENS + u;
        const float *x = logits + (size_t)min(token, tokens - 1) * experts;
        Best best = {-INFINITY, -INFINITY, 0, 0};
        if (VECTOR == 2 && experts % 2 == 0) {
            for (int e = 2 * lane; e < experts; e += 2 * LANES) {
                const float2 v = *(const float2 *)(x + e);
                take(best, v.x, e), take(best, v.y, e + 1);
            }
        } else {
            for (int e = lane; e < experts; e += LANES) take(best, x[e], e);
        }
#pragma unroll
        for (int by = LANES / 2; by; by /= 2) {
            const float a = __shfl_xor_sync(0xffffffffu, best.a, by), b = __shfl_xor_sync(0xffffffffu, best.b, by);
            const int i = __shfl_xor_sync(0xffffffffu, best.i, by), j = __shfl_xor_sync(0xffffffffu, best.j, by);
            take(best, a, i), take(best, b, j);
        }
        float p = 1.0f, q = expf(best.b - best.a);
        if (SOFTMAX) {
            const float shift = SHIFT ? best.a : 0.0f;
            float sum = 0.0f;
            for (int e = lane; e < experts; e += LANES) sum += expf(x[e] - shift);
#pragma unroll
            for (int by = LANES / 2; by; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
            p = expf(best.a - shift) / sum, q = expf(best.b - shift) / sum;
        }
        if (lane == 0 && token < tokens) {
            weights[2 * (size_t)token] = p / (p + q), weights[2 * (size_t)token + 1] = q / (p + q);
            chosen[2 * (size_t)token] = best.i, chosen[2 * (size_t)token + 1] = best.j;
        }
    }
}
