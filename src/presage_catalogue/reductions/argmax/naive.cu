// presage: problem argmax
// presage: entry argmax
// presage: grid rows
// presage: block 256

extern "C" __global__ void argmax(const float *x, long long *y, int rows, int cols) {
    __shared__ float value[256];
    __shared__ int place[256];
    const float *in = x + (size_t)blockIdx.x * cols;
    const int t = threadIdx.x;
    value[t] = -INFINITY;
    place[t] = cols;
    for (int c = t; c < cols; c += 256)
        if (in[c] > value[t] || place[t] == cols) value[t] = in[c], place[t] = c;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        // Of equal values the earlier one counts.
        if (t < half && (value[t + half] > value[t] || (value[t + half] == value[t] && place[t + half] < place[t]))) {
            value[t] = value[t + half];
            place[t] = place[t + half];
        }
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = place[0];
}
