// presage: problem softmax
// presage: entry softmax
// presage: grid rows
// presage: block 256
//
// One block per row, which it reads three times: for the maximum, the sum and the result.

extern "C" __global__ void softmax(const float *x, float *y, int rows, int cols) {
    __shared__ float part[256];
    const float *in = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
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
    for (int c = t; c < cols; c += 256) out[c] = expf(in[c] - largest) / part[0];
}
