struct Arrays {
    const T *in[INPUTS], *param[PARAMS > 0 ? PARAMS : 1];
    T *out[OUTPUTS];
    int rows, cols, period, step, size;
};

template <int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
template <int N> struct alignas(4 * N) Kept { float at[KEPT][N]; };
template <int N> struct Given { float at[PARAMS > 0 ? PARAMS : 1][N]; };

template <int N> __device__ Given<N> parameters(const Arrays &a, int row, int v) {
    Given<N> given;
#pragma unroll
    for (int j = 0; j < PARAMS; j++) {
        if (BY_COLUMN) {
            const Pack<N> pack = ((const Pack<N> *)a.param[j])[v];
#pragma unroll
            for (int i = 0; i < N; i++) given.at[j][i] = (float)pack.at[i];
        } else {
#pragma unroll
            for (int i = 0; i < N; i++)
                given.at[j][i] = (float)a.param[j][row % a.period * a.step + (v * N + i) / a.size];
        }
    }
    return given;
}

// What a row keeps of its elements v * N and following.
template <int N> __device__ Kept<N> gather(const Arrays &a, int row, int v) {
    const Given<N> given = parameters<N>(a, row, v);
    Pack<N> packs[INPUTS];
#pragma unroll
    for (int j = 0; j < INPUTS; j++) packs[j] = ((const Pack<N> *)(a.in[j] + (size_t)row * a.cols))[v];
    Kept<N> kept;
#pragma unroll
    for (int i = 0; i < N; i++) {
        float in[INPUTS], p[PARAMS > 0 ? PARAMS : 1], k[KEPT];
#pragma unroll
        for (int j = 0; j < INPUTS; j++) in[j] = (float)packs[j].at[i];
#pragma unroll
        for (int j = 0; j < PARAMS; j++) p[j] = given.at[j][i];
        prepare(k, in, p);
#pragma unroll
        for (int j = 0; j < KEPT; j++) kept.at[j][i] = k[j];
    }
    return kept;
}

template <int N> __device__ void include_all(State *s, const Kept<N> &kept, int pass, const State *first, int n) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        float k[KEPT];
#pragma unroll
        for (int j = 0; j < KEPT; j++) k[j] = kept.at[j][i];
        include(s, k, pass, first, n);
    }
}

template <int N> __device__ void scatter(const Arrays &a, int row, int v, const Kept<N> &kept, const Row *r) {
    const Given<N> given = parameters<N>(a, row, v);
    Pack<N> packs[OUTPUTS];
#pragma unroll
    for (int i = 0; i < N; i++) {
        float out[OUTPUTS], p[PARAMS > 0 ? PARAMS : 1], k[KEPT];
#pragma unroll
        for (int j = 0; j < KEPT; j++) k[j] = kept.at[j][i];
#pragma unroll
        for (int j = 0; j < PARAMS; j++) p[j] = given.at[j][i];
        emit(out, k, p, r);
#pragma unroll
        for (int j = 0; j < OUTPUTS; j++) packs[j].at[i] = (T)out[j];
    }
#pragma unroll
    for (int j = 0; j < OUTPUTS; j++) ((Pack<N> *)(a.out[j] + (size_t)row * a.cols))[v] = packs[j];
}

__device__ State warp_total(State s) {
    for (int offset = 16; offset > 0; offset /= 2) {
        const State o = from_lane(&s, offset);
        merge(&s, &o);
    }
    return s;
}
