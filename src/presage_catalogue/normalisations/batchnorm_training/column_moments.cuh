#if METHOD == 1
typedef double Sum;
#else
typedef float Sum;
#endif

struct alignas(4 * VECTOR) Pack { float at[VECTOR]; };

struct State {
    Sum count, mean, squares;
};

// METHOD 0 and 1 keep sums relative to an origin, 2 a running mean (Welford, Chan).
__device__ void include(State &s, float v, float origin) {
    if (METHOD == 2) {
        s.count += 1.0f;
        const float apart = v - s.mean;
        s.mean += __fdividef(apart, s.count);
        s.squares += apart * (v - s.mean);
    } else {
        const Sum apart = (Sum)v - origin;
        s.mean += apart;
        s.squares += apart * apart;
    }
}

__device__ void merge(State &s, const State &o) {
    if (METHOD == 2) {
        if (o.count == 0.0f) return;
        const float count = s.count + o.count, share = o.count / count, apart = o.mean - s.mean;
        s.squares += o.squares + apart * apart * s.count * share;
        s.mean += apart * share;
        s.count = count;
    } else {
        s.mean += o.mean;
        s.squares += o.squares;
    }
}

__device__ Pack load(const float *from, bool whole, int left) {
    if (whole) return *(const Pack *)from;
    Pack pack;
#pragma unroll
    for (int i = 0; i < VECTOR; i++) pack.at[i] = i < left ? from[i] : 0.0f;
    return pack;
}
