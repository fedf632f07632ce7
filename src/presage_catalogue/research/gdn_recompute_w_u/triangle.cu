// presage: problem gdn_recompute_w_u
// presage: tune BC = 64, 32, 128
// presage: tune TI = 8, 4, 16
// presage: tune TC = 1, 2, 4
// presage: tune SKIP = 1, 0
// presage: tune STAGED = 1, 0
// presage: tune FACTOR = 0, 1
// presage: where 64 * BC <= 1024 * TI * TC and 64 * BC >= 64 * TI * TC and (TI != 16 or TC <= 2) and BC >= 16 * TC
// presage: where (FACTOR == 0 or SKIP == 1) and (STAGED == 1 or TI != 16)
// presage: entry multiply
// presage: grid heads * chunks, cdiv(dk, BC) + cdiv(dv, BC)
// presage: block BC // TC, 64 // TI
// presage: shared 4 * (64 * 65 + STAGED * 64 * BC)
//
// A block computes BC columns of w or of u for one chunk. The matrix lies in shared memory, with beta and the gate in it
// or (FACTOR) with them put on the right-hand side, which STAGED holds in shared memory too. A thread sums TI rows of TC
// columns; SKIP ends each sum at the diagonal of its rows.

#define WIDE (BC / TC)
#define THREADS (WIDE * (64 / TI))

extern "C" __global__ void __launch_bounds__(THREADS)
multiply(const float *__restrict__ k, const float *__restrict__ v, const float *__restrict__ beta,
         const float *__restrict__ a, const float *__restrict__ g, float *__restrict__ w, float *__restrict__ u,
         int heads, int chunks, int dk, int dv) {
    extern __shared__ float memory[];
    float *as = memory, *rs = memory + 64 * 65;
    const size_t first = (size_t)blockIdx.x * 64;
    const int for_w = (dk + BC - 1) / BC;
    const bool is_w = blockIdx.y < for_w;
    const int width = is_w ? dk : dv, start = (is_w ? blockIdx.y : blockIdx.y - for_w) * BC;
    const float *from = (is_w ? k : v) + first * width;
    float *to = (is_w ? w : u) + first * width;
    const auto factor = [&](int j) { return is_w ? beta[first + j] * expf(g[first + j]) : beta[first + j]; };
    const int thread = threadIdx.y * WIDE + threadIdx.x;
    for (int e = thread; e < 64 * 64; e += THREADS)
        as[e / 64 * 65 + e % 64] = a[first * 64 + e] * (FACTOR ? 1.0f : factor(e % 64));
    if (STAGED)
        for (int e = thread; e < 64 * BC; e += THREADS) {
            const int c = start + e % BC;
            rs[e] = c < width ? from[e / BC * width + c] * (FACTOR ? factor(e / BC) : 1.0f) : 0.0f;
        }
    __syncthreads();
    const int i = threadIdx.y * TI, end = SKIP ? i + TI : 64;
    float sum[TI][TC] = {};
    for (int j = 0; j < end; j++) {
        float r[TC];
#pragma unroll
        for (int q = 0; q < TC; q++) {
            const int c = threadIdx.x + q * WIDE;
            r[q] = STAGED ? rs[j * BC + c] : from[j * width + min(start + c, width - 1)] * (FACTOR ? factor(j) : 1.0f);
        }
#pragma unroll
        for (int p = 0; p < TI; p++) {
            const float l = as[(i + p) * 65 + j];
#pragma unroll
            for (int q = 0; q < TC; q++) sum[p][q] += l * r[q];
        }
    }
#pragma unroll
    for (int p = 0; p < TI; p++)
#pragma unroll
        for (int q = 0; q < TC; q++) {
            const int c = start + threadIdx.x + q * WIDE;
            if (c < width) to[(i + p) * width + c] = sum[p][q];
        }
}
