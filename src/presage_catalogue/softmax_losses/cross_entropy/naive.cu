// presage: problem cross_entropy
// presage: entry cross_entropy
// presage: grid rows
// presage: block 256
//
// One block per row, which it reads twice: for the maximum and for the sum of exponentials.

extern "C" __global__ void cross_entropy(const float *logits, const long long *targets, float *loss, int rows,
                                         int cols) {
    __shared__ float part[256];
    const float *in = logits + (size_t)blockIdx.x * cols;
    const int t = threadIdx.x;

    float largest = -INFINITY;
    for (int c = t; c < cols; c += 256) largest = fmaxf(largest, in[c]);
    part[t] = largest;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] = fmaxf(part[t], part[t + half]);
        __syncthreads();
    }
    largest = part[0];
    __syncthreads();

    float sum = 0.0f;
    for (int c = t; c < cols; c += 256) sum += expf(in[c] - largest);
    part[t] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) loss[blockIdx.x] = largest + logf(part[0]) - in[targets[blockIdx.x]];
}
