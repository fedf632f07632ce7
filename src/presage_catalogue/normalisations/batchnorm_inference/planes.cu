// presage: problem batchnorm_inference
// presage: entry batchnorm
// presage: tune LANES = 256, 32, 64, 128, 512
// presage: tune PLANES = 1, 4, 8
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: tune CACHE = 0, 1
// presage: where PLANES == 1 or LANES <= 256
// presage: where CACHE == 0 or UNROLL == 4
// presage: grid cdiv(batch * channels, PLANES)
// presage: block LANES * PLANES
//
// LANES threads take a channel of an image, with its scale and shift in registers; a block has PLANES of them. CACHE 1
// marks the elements as used once.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ Pack<N> load(const Pack<N> *from) {
    if (CACHE == 0) return *from;
    Pack<N> pack;
    if (N == 4) {
        const float4 v = __ldcs((const float4 *)from);
        const float at[4] = {v.x, v.y, v.z, v.w};
        for (int i = 0; i < N; i++) pack.at[i] = at[i];
    } else {
        for (int i = 0; i < N; i++) pack.at[i] = __ldcs((const float *)from + i);
    }
    return pack;
}

template <int N> __device__ void store(Pack<N> *to, const Pack<N> &pack) {
    if (CACHE == 0) *to = pack;
    else if (N == 4) __stcs((float4 *)to, make_float4(pack.at[0], pack.at[1 % N], pack.at[2 % N], pack.at[3 % N]));
    else
        for (int i = 0; i < N; i++) __stcs((float *)to + i, pack.at[i]);
}

template <int N> __device__ void plane(const float *in, float *out, int size, int lane, float scale, float shift) {
    const Pack<N> *from = (const Pack<N> *)in;
    Pack<N> *to = (Pack<N> *)out;
    for (int first = lane; first < size / N; first += UNROLL * LANES) {
        Pack<N> pack[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (first + u * LANES < size / N) pack[u] = load<N>(&from[first + u * LANES]);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * LANES >= size / N) continue;
#pragma unroll
            for (int i = 0; i < N; i++) pack[u].at[i] = fmaf(pack[u].at[i], scale, shift);
            store<N>(&to[first + u * LANES], pack[u]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES *PLANES)
batchnorm(const float *__restrict__ x, const float *__restrict__ mean, const float *__restrict__ variance,
          const float *__restrict__ weight, const float *__restrict__ bias, float *__restrict__ y, int batch,
          int channels, int size) {
    const int which = blockIdx.x * PLANES + threadIdx.x / LANES, lane = threadIdx.x % LANES, c = which % channels;
    if (which >= batch * channels) return;
    const float scale = rsqrtf(variance[c] + 1e-5f) * weight[c], shift = bias[c] - mean[c] * scale;
    const size_t start = (size_t)which * size;
    if (size % VECTOR == 0) plane<VECTOR>(x + start, y + start, size, lane, scale, shift);
    else plane<1>(x + start, y + start, size, lane, scale, shift);
}
