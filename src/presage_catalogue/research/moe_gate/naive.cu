// presage: problem moe_gate
// presage: entry gate
// presage: grid cdiv(tokens, 128)
// presage: block 128

extern "C" __global__ void gate(const float *logits, float *weights, int *chosen, int tokens, int experts) {
    const int token = blockIdx.x * 128 + threadIdx.x;
    if (token >= tokens) return;
    const float *x = logits + (size_t)token * experts;
    int first = 0, second = -1;
    for (int e = 1; e < experts; e++) {
        if (x[e] > x[first]) second = first, first = e;
        else if (second < 0 || x[e] > x[second]) second = e;
    }
    float sum = 0.0f;
    for (int e = 0; e < experts; e++) sum += expf(x[e] - x[first]);
    const float p = 1.0f / sum, q = expf(x[second] - x[first]) / sum;
    weights[2 * token] = p / (p + q), weights[2 * token + 1] = q / (p + q);
    chosen[2 * token] = first, chosen[2 * token + 1] = second;
}
