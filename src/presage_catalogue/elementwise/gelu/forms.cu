// presage: problem gelu
// presage: entry gelu
// presage: tune ERF = 0, 1, 2, 3
// presage: tune THREADS = 256, 128, 1024
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 1, 4
// presage: tune BLOCKS = 0, 1056
// presage: grid BLOCKS if BLOCKS else cdiv(n, THREADS * VECTOR * UNROLL)
// presage: block THREADS
//
// ERF 0 is the library's erf, 1 its normal distribution function, 2 Abramowitz and Stegun 7.1.26 with the hardware's
// exponential and reciprocal, 3 a quotient of polynomials. BLOCKS 0 launches a block per tile; otherwise that many
// blocks walk over the tiles.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

__device__ float gelu_of(float x) {
    if (ERF == 0) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    if (ERF == 1) return x * normcdff(x);
    const float z = fminf(fabsf(x) * 0.70710678f, 4.0f); // erf(4) is 1 in float32
    float erf;
    if (ERF == 2) {
        const float t = __fdividef(1.0f, 1.0f + 0.3275911f * z);
        float p = 1.061405429f;
        p = p * t - 1.453152027f;
        p = p * t + 1.421413741f;
        p = p * t - 0.284496736f;
        p = p * t + 0.254829592f;
        erf = 1.0f - p * t * __expf(-z * z);
    } else {
        const float s = z * z;
        float p = -2.72614225801306e-10f;
        p = p * s + 2.77068142495902e-08f;
        p = p * s - 2.10102402082508e-06f;
        p = p * s - 5.69250639462346e-05f;
        p = p * s - 7.34990630326855e-04f;
        p = p * s - 2.95459980854025e-03f;
        p = p * s - 1.60960333262415e-02f;
        float q = -1.45660718464996e-05f;
        q = q * s - 2.13374055278905e-04f;
        q = q * s - 1.68282697438203e-03f;
        q = q * s - 7.37332916720468e-03f;
        q = q * s - 1.42647390514189e-02f;
        erf = z * __fdividef(p, q);
    }
    return 0.5f * (x + fabsf(x) * erf);
}

extern "C" __global__ void __launch_bounds__(THREADS)
gelu(const float *__restrict__ x, float *__restrict__ y, int n) {
    typedef Pack<VECTOR> Vector;
    const Vector *from = (const Vector *)x;
    const int vectors = n / VECTOR;
    for (int tile = blockIdx.x; tile * THREADS * UNROLL < vectors; tile += gridDim.x) {
        const int first = tile * THREADS * UNROLL + threadIdx.x;
        Vector kept[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (first + u * THREADS < vectors) kept[u] = from[first + u * THREADS];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (first + u * THREADS < vectors) {
#pragma unroll
                for (int i = 0; i < VECTOR; i++) kept[u].at[i] = gelu_of(kept[u].at[i]);
                ((Vector *)y)[first + u * THREADS] = kept[u];
            }
        }
    }
    // What is left after the last whole vector.
    const int last = vectors * VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && last < n) y[last] = gelu_of(x[last]);
}
