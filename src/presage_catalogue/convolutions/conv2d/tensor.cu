// presage: problem conv2d
// presage: entry conv2d
// presage: tune BM = 64, 128, 32
// presage: tune BN = 128, 64
// presage: tune BK = 16, 32
// presage: tune WM = 32, 64
// presage: tune WN = 32, 64
// presage: tune STAGES = 3, 2
// presage: where 32 * (BM // WM) >= WN
// presage: where BM >= WM and WM * WN <= 2048 and 2 * WM * WN <= BM * BN and BM * BN <= 8 * WM * WN
// presage: grid cdiv(o, BM) * cdiv(n * (h - r + 1) * (w - s + 1), BN)
// presage: block 32 * (BM // WM) * (BN // WN)
// presage: shared 4 * STAGES * (BM * (BK + 4) + BK * (BN + 8)) + 4 * (c * r * s if c * r * s <= 8192 else 0)
//
// The product of the weights (o by c * r * s) and the image's patches (c * r * s by pixels) on the tensor cores. Each
// factor is the sum of two TF32 numbers, and three of their four products are added up, so the result is as good as
// float32's (Ootomo and Yokota, 2022). Tensor cores round sums towards zero, so each tile is summed from zero there and
// added to the total by the ordinary units. Patches are gathered, element by element, while the tile before them is
// multiplied; where a patch's k-th element lies comes from a table in shared memory, if that has room for it.

#define THREADS (32 * (BM / WM) * (BN / WN))
#define ROWS (WM / 16)
#define COLS (WN / 8)
// The padding puts the rows that a warp reads together into different banks.
#define A_PITCH (BK + 4)
#define B_PITCH (BN + 8)
#define STAGE (BM * A_PITCH + BK * B_PITCH)

// Copies one float, or makes it zero; does not wait.
__device__ void copy_async4(float *to, const float *from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes));
}
__device__ void copy_commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

// d += a * b, with a of 16 by 8 and b of 8 by 8 elements spread over the warp.
__device__ void mma(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
                   "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// The nearest TF32 number, which has 10 bits of mantissa; what it misses, rounded the same way, is the second one.
__device__ float nearest(float v) { return __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u); }

template <int N> struct Split {
    float high[N], low[N];

    __device__ void set(int i, float v) {
        high[i] = nearest(v);
        low[i] = nearest(v - high[i]);
    }
};

__device__ void multiply(const float *a, const float *b, float (&total)[ROWS][COLS][4]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane / 4, in_quad = lane % 4;
    a += (warp / (BN / WN) * WM + quad) * A_PITCH + in_quad;
    b += in_quad * B_PITCH + warp % (BN / WN) * WN + quad;
    float sum[ROWS][COLS][4] = {};
#pragma unroll
    for (int k = 0; k < BK; k += 8) {
        Split<4> left[ROWS];
        Split<2> right[COLS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int u = 0; u < 4; u++) left[i].set(u, a[(i * 16 + u % 2 * 8) * A_PITCH + k + u / 2 * 4]);
#pragma unroll
        for (int j = 0; j < COLS; j++)
#pragma unroll
            for (int u = 0; u < 2; u++) right[j].set(u, b[(k + u * 4) * B_PITCH + j * 8]);
        // Products of one element do not follow each other, since each would wait for the one before.
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) mma(sum[i][j], left[i].low, right[j].high);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) mma(sum[i][j], left[i].high, right[j].low);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) mma(sum[i][j], left[i].high, right[j].high);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++)
#pragma unroll
            for (int u = 0; u < 4; u++) total[i][j][u] += sum[i][j][u];
}

extern "C" __global__ void __launch_bounds__(THREADS)
conv2d(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int n, int c, int h, int w,
       int o, int r, int s) {
    extern __shared__ __align__(16) float tiles[];
    int *table = (int *)(tiles + STAGES * STAGE);
    const int terms = c * r * s, cols = w - s + 1, area = (h - r + 1) * cols, pixels = n * area;
    const bool known = terms <= 8192;
    const auto worked_out = [&](int k) { return (k / (r * s) * h + k / s % r) * w + k % s; };
    for (int k = threadIdx.x; known && k < terms; k += THREADS) table[k] = worked_out(k);
    __syncthreads();

    const int groups = (o + BM - 1) / BM, row = blockIdx.x % groups * BM, col = blockIdx.x / groups * BN;
    const int mine = col + threadIdx.x % BN;
    const float *patch = x;
    if (mine < pixels) patch += (size_t)(mine / area) * c * h * w + mine % area / cols * w + mine % area % cols;

    const auto start = [&](int tile) {
        float *to = tiles + tile % STAGES * STAGE;
        const int first = tile * BK;
        if (first < terms) {
            for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
                const int out = row + i / BK, k = first + i % BK;
                const bool inside = out < o && k < terms;
                copy_async4(to + i / BK * A_PITCH + i % BK, inside ? weight + (size_t)out * terms + k : weight,
                            inside ? 4 : 0);
            }
            to += BM * A_PITCH;
            // A thread keeps its pixel, since BN divides THREADS.
            for (int i = threadIdx.x; i < BK * BN; i += THREADS) {
                const int k = first + i / BN;
                const bool inside = k < terms && mine < pixels;
                copy_async4(to + i / BN * B_PITCH + i % BN, inside ? patch + (known ? table[k] : worked_out(k)) : x,
                            inside ? 4 : 0);
            }
        }
        copy_commit(); // a group even when it is empty, so that their number tells which tile has come
    };
    float total[ROWS][COLS][4] = {};
    for (int tile = 0; tile < STAGES - 1; tile++) start(tile);
    for (int tile = 0; tile * BK < terms; tile++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); // the tile is here for all, and all are done with the one before
        start(tile + STAGES - 1);
        const float *here = tiles + tile % STAGES * STAGE;
        multiply(here, here + BM * A_PITCH, total);
    }

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int j = 0; j < COLS; j++)
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int at = col + warp % (BN / WN) * WN + j * 8 + lane % 4 * 2 + u % 2;
            if (at >= pixels) continue;
            float *out = y + (size_t)(at / area) * o * area + at % area;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int channel = row + warp / (BN / WN) * WM + i * 16 + lane / 4 + u / 2 * 8;
                if (channel < o) out[(size_t)channel * area] = total[i][j][u];
            }
        }
}
