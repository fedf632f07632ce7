// presage: tune THREADS = 256, 64, 1024
// presage: tune VECTOR = 4, 1
// presage: tune BLOCKS = 0, 264
$launches$
//
// A launch for every step of the formula, with what it computes kept in memory for those after it. BLOCKS 0 launches a
// thread per vector; otherwise that many blocks walk over the vectors.
#define ARGUMENTS $arguments$$temporaries$

template <int N> struct alignas(4 * N) Pack { float at[N]; };
typedef Pack<VECTOR> Vector;

template <int K, class F> __device__ __forceinline__ void walk(const float *const (&from)[K], float *to, int n, F f) {
    for (int at = (blockIdx.x * THREADS + threadIdx.x) * VECTOR; at < n; at += gridDim.x * THREADS * VECTOR) {
        if (at + VECTOR <= n) {
            Vector kept[K], made;
#pragma unroll
            for (int k = 0; k < K; k++) kept[k] = *(const Vector *)(from[k] + at);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                float in[K];
#pragma unroll
                for (int k = 0; k < K; k++) in[k] = kept[k].at[i];
                made.at[i] = f(in);
            }
            *(Vector *)(to + at) = made;
        } else {
            for (int i = at; i < n; i++) {
                float in[K];
#pragma unroll
                for (int k = 0; k < K; k++) in[k] = from[k][i];
                to[i] = f(in);
            }
        }
    }
}

$kernels$
