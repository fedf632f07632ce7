// presage: problem matmul
// presage: entry matmul
// presage: tune BM = 128, 64
// presage: tune BN = 128, 64
// presage: tune BK = 32, 16
// presage: tune WM = 32, 64
// presage: tune WN = 64, 32
// presage: tune STAGES = 3, 2
// presage: tune GROUP = 8, 1
// presage: where WM * WN <= 2048 and 2 * WM * WN <= BM * BN and BM >= WM and BN >= WN
// presage: where GROUP == 8 or STAGES == 3
// presage: grid cdiv(m, BM) * cdiv(n, BN)
// presage: block 32 * (BM // WM) * (BN // WN)
// presage: shared 4 * STAGES * (BM * (BK + 4) + BK * (BN + 8))
//
// On the tensor cores: each factor is the sum of two TF32 numbers, and three of their four products are added up, so
// the result is as good as float32's (Ootomo and Yokota, 2022). Tensor cores round sums towards zero, so each tile is
// summed from zero there and added to the total by the ordinary units. A warp computes WM * WN elements of the
// block's BM * BN; STAGES tiles are on their way into shared memory while one is multiplied.

#define WARPS ((BM / WM) * (BN / WN))
#define THREADS (32 * WARPS)
#define ROWS (WM / 16)
#define COLS (WN / 8)
// The padding puts the rows that a warp reads together into different banks.
#define A_PITCH (BK + 4)
#define B_PITCH (BN + 8)
#define STAGE (BM * A_PITCH + BK * B_PITCH)

// Copies `bytes` of 16 and fills the rest with zeros; does not wait.
__device__ void copy_async(float *to, const float *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
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

// A tile of `height` by `width` elements from row `row` and column `col` of a row-major matrix; zeros outside of it.
template <int height, int width, int pitch>
__device__ void fetch(float *to, const float *from, int row, int col, int rows, int cols) {
    const bool aligned = cols % 4 == 0;
    for (int i = threadIdx.x; i < height * width / 4; i += THREADS) {
        const int r = i / (width / 4), c = i % (width / 4) * 4;
        const bool inside = row + r < rows && col + c < cols;
        float *place = to + r * pitch + c;
        const float *source = inside ? from + (size_t)(row + r) * cols + col + c : from;
        if (aligned) {
            copy_async(place, source, inside ? 16 : 0);
        } else {
            for (int k = 0; k < 4; k++) place[k] = inside && col + c + k < cols ? source[k] : 0.0f;
        }
    }
}

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
matmul(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k) {
    extern __shared__ __align__(16) float tiles[];
    const int down = (m + BM - 1) / BM, across = (n + BN - 1) / BN;
    const int first = blockIdx.x / (GROUP * across) * GROUP, height = min(GROUP, down - first);
    const int inside = blockIdx.x % (GROUP * across);
    const int row = (first + inside % height) * BM, col = inside / height * BN;

    const auto start = [&](int tile) {
        float *to = tiles + tile % STAGES * STAGE;
        if (tile * BK < k) {
            fetch<BM, BK, A_PITCH>(to, a, row, tile * BK, m, k);
            fetch<BK, BN, B_PITCH>(to + BM * A_PITCH, b, tile * BK, col, k, n);
        }
        copy_commit(); // a group even when it is empty, so that their number tells which tile has come
    };
    float total[ROWS][COLS][4] = {};
    for (int tile = 0; tile < STAGES - 1; tile++) start(tile);
    for (int tile = 0; tile * BK < k; tile++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); // the tile is here for all, and all are done with the one before
        start(tile + STAGES - 1);
        const float *here = tiles + tile % STAGES * STAGE;
        multiply(here, here + BM * A_PITCH, total);
    }

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++)
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int r = row + warp / (BN / WN) * WM + i * 16 + lane / 4 + u / 2 * 8;
                const int q = col + warp % (BN / WN) * WN + j * 8 + lane % 4 * 2 + u % 2;
                if (r < m && q < n) c[(size_t)r * n + q] = total[i][j][u];
            }
}
