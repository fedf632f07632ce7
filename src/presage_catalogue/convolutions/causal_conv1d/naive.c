// presage: problem causal_conv1d
// presage: entry causal_conv1d

void causal_conv1d(const float *x, const float *weight, float *y, int batch, int channels, int length, int width) {
    for (int b = 0; b < batch; b++) {
        for (int c = 0; c < channels; c++) {
            long start = ((long)b * channels + c) * length;
            for (int t = 0; t < length; t++) {
                float sum = 0.0f;
                for (int j = 0; j < width; j++) {
                    int from = t - (width - 1) + j;
                    if (from >= 0) sum += weight[(long)c * width + j] * x[start + from];
                }
                y[start + t] = sum;
            }
        }
    }
}
