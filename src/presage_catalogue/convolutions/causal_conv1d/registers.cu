// presage: problem causal_conv1d
// presage: entry causal_conv1d
// presage: tune ITEMS = 4, 8, 16
// presage: tune THREADS = 128, 64, 256, 512
// presage: tune SPECIAL = 1, 0
// presage: tune STREAMING = 0, 1
// presage: grid cdiv(batch * channels * length, THREADS * ITEMS)
// presage: block THREADS
//
// A thread computes ITEMS outputs in a row from a window of x in its registers, read four floats at a time; the overlap
// with its neighbours' windows comes from cache. SPECIAL has code of its own for the usual widths, with every loop
// unrolled. STREAMING marks outputs as not to be kept in cache.

__device__ void store(float4 *to, float4 value) {
    if (STREAMING) __stcs(to, value);
    else *to = value;
}

template <int WIDTH> __device__ void filter(const float *row, const float *weight, float *out, int t) {
    const int history = (WIDTH - 1 + 3) / 4 * 4;
    alignas(16) float window[history + ITEMS], sum[ITEMS];
#pragma unroll
    for (int i = 0; i < history + ITEMS; i += 4) {
        const int at = t - history + i;
        *(float4 *)(window + i) = at >= 0 ? *(const float4 *)(row + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        const float w = weight[j];
#pragma unroll
        for (int i = 0; i < ITEMS; i++) sum[i] += w * window[history - (WIDTH - 1) + i + j];
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i += 4) store((float4 *)(out + t + i), *(float4 *)(sum + i));
}

// Any width: the window moves through the registers by one place per weight.
__device__ void filter_any(const float *row, const float *weight, float *out, int t, int width) {
    alignas(16) float window[ITEMS], sum[ITEMS];
    const int start = t - (width - 1);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        sum[i] = 0.0f;
        window[i] = start + i >= 0 ? row[start + i] : 0.0f;
    }
    for (int j = 0; j < width; j++) {
        const float w = weight[j];
#pragma unroll
        for (int i = 0; i < ITEMS; i++) sum[i] += w * window[i];
#pragma unroll
        for (int i = 1; i < ITEMS; i++) window[i - 1] = window[i];
        const int next = start + j + ITEMS;
        window[ITEMS - 1] = next >= 0 && j + 1 < width ? row[next] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i += 4) store((float4 *)(out + t + i), *(float4 *)(sum + i));
}

extern "C" __global__ void __launch_bounds__(THREADS)
causal_conv1d(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int batch,
              int channels, int length, int width) {
    const size_t size = (size_t)batch * channels * length;
    const size_t first = ((size_t)blockIdx.x * THREADS + threadIdx.x) * ITEMS;
    if (length % ITEMS == 0) {
        if (first >= size) return;
        const int t = first % length;
        const size_t start = first - t;
        const float *row = x + start, *weights = weight + start / length % channels * width;
        if (SPECIAL && width == 4) filter<4>(row, weights, y + start, t);
        else if (SPECIAL && width == 16) filter<16>(row, weights, y + start, t);
        else filter_any(row, weights, y + start, t, width);
        return;
    }
    // ITEMS neighbours may belong to two rows, so every output finds its own.
    for (size_t at = first; at < min(size, first + ITEMS); at++) {
        const int t = at % length;
        const float *weights = weight + at / length % channels * width;
        float sum = 0.0f;
        for (int back = min(t, width - 1); back >= 0; back--) sum += weights[width - 1 - back] * x[at - back];
        y[at] = sum;
    }
}
