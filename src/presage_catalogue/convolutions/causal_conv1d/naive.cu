// presage: problem causal_conv1d
// presage: entry causal_conv1d
// presage: grid cdiv(batch * channels * length, 256)
// presage: block 256

extern "C" __global__ void causal_conv1d(const float *x, const float *weight, float *y, int batch, int channels,
                                         int length, int width) {
    const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= (size_t)batch * channels * length) return;
    const int t = at % length, channel = at / length % channels;
    float sum = 0.0f;
    for (int j = 0; j < width; j++) {
        const int back = width - 1 - j;
        if (back <= t) sum += weight[channel * width + j] * x[at - back];
    }
    y[at] = sum;
}
