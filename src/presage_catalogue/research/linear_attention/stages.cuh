// presage: entry summarise
// presage: grid cdiv(dk, BM) * cdiv(dv, BN), heads * cdiv(length, 64)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry accumulate
// presage: grid cdiv(dk * dv, 128), heads
// presage: block 128
// presage: entry score
// presage: grid cdiv(64, BM) * cdiv(64, BN), heads * cdiv(length, 64)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: entry output
// presage: grid cdiv(64, BM) * cdiv(dv, BN), heads * cdiv(length, 64)
// presage: block (BM // TM) * (BN // TN) * LANES
// presage: scratch states = 4 * heads * cdiv(length, 64) * dk * dv
// presage: scratch scores = 16384 * heads * cdiv(length, 64)

#define ARGUMENTS                                                                                                       \
    const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o,       \
        int heads, int length, int dk, int dv, float *__restrict__ states, float *__restrict__ scores
#define CHUNKS ((length + 63) / 64)
#define START (blockIdx.y % CHUNKS * 64)
#define TALL min(64, length - (int)START)
#define FIRST ((size_t)(blockIdx.y / CHUNKS) * length + START)

extern "C" __global__ void __launch_bounds__(THREADS) summarise(ARGUMENTS) {
    const size_t first = FIRST;
    float *state = states + (size_t)blockIdx.y * dk * dv;
    product<1>(
        blockIdx.x, dk, dv, TALL, [&](int d, int t) { return k[(first + t) * dk + d]; },
        [&](int t, int j, int) { return v[(first + t) * dv + j]; },
        [&](int d, int j, const float (&s)[1]) { state[d * dv + j] = s[0]; });
}

// Replaces each chunk's sum by those of all chunks before it.
extern "C" __global__ void accumulate(ARGUMENTS) {
    const int at = blockIdx.x * 128 + threadIdx.x;
    if (at >= dk * dv) return;
    float sum = 0.0f;
    for (int c = 0; c < CHUNKS; c++) {
        float *state = states + ((size_t)blockIdx.y * CHUNKS + c) * dk * dv + at;
        const float own = *state;
        *state = sum;
        sum += own;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) score(ARGUMENTS) {
    const size_t first = FIRST;
    float *to = scores + (size_t)blockIdx.y * 4096;
    product<1>(
        blockIdx.x, TALL, TALL, dk, [&](int i, int d) { return q[(first + i) * dk + d]; },
        [&](int d, int j, int) { return k[(first + j) * dk + d]; },
        [&](int i, int j, const float (&s)[1]) { to[i * 64 + j] = j <= i ? s[0] : 0.0f; });
}

// One sum over the state's rows and then over the chunk's tokens.
extern "C" __global__ void __launch_bounds__(THREADS) output(ARGUMENTS) {
    const size_t first = FIRST;
    const float *state = states + (size_t)blockIdx.y * dk * dv, *own = scores + (size_t)blockIdx.y * 4096;
    product<1>(
        blockIdx.x, TALL, dv, dk + TALL,
        [&](int i, int p) { return p < dk ? q[(first + i) * dk + p] : own[i * 64 + p - dk]; },
        [&](int p, int j, int) { return p < dk ? state[p * dv + j] : v[(first + p - dk) * dv + j]; },
        [&](int i, int j, const float (&s)[1]) { o[(first + i) * dv + j] = s[0]; });
}
