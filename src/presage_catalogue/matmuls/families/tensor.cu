// presage: entry $entry$
// presage: tune BM = 64, 128, 32
// presage: tune BN = 64, 128
// presage: tune BK = 32, 16
// presage: tune WM = 32, 16, 64
// presage: tune WN = 32, 64
// presage: tune STAGES = 3, 2, 4
// presage: tune PASSES = 3, 1
// presage: where BM >= WM and BN >= WN and WM * WN <= 2048 and 2 * WM * WN <= BM * BN and BM * BN <= 16 * WM * WN
// presage: where STAGES == 3 or BK == 32
// presage: where PASSES == 3 or (STAGES == 3 and BK == 32 and WN == 32)
// presage: grid $batches$ * cdiv($m$, BM) * cdiv(n, BN)
// presage: block 32 * (BM // WM) * (BN // WN)
// presage: shared 4 * STAGES * (max(BM * (BK + 4), BK * (BM + 8)) + $factors$ * max(BN * (BK + 4), BK * (BN + 8)))
//
// On the tensor cores:$tensor_tf32$ each factor is the sum of two TF32 numbers, and PASSES of their four products are added up;
// with three the result is as good as float32's (Ootomo and Yokota, 2022). Tensor cores round sums towards zero, so each
// tile is summed from zero there and added to the total by the ordinary units. A warp computes WM * WN elements of the
// block's BM * BN; STAGES tiles are on their way into shared memory while one is multiplied.
$operands$

#define WARPS ((BM / WM) * (BN / WN))
#define THREADS (32 * WARPS)
#define ROWS (WM / 16)
#define COLS (WN / 8)
// Tiles lie in shared memory as they do outside. The padding puts what a warp reads together into different banks.
#define LEFT_PITCH (LEFT_ALONG_K ? BK + 4 : BM + 8)
#define RIGHT_PITCH (RIGHT_ALONG_K ? BK + 4 : BN + 8)
#define LEFT_SIZE (LEFT_PITCH * (LEFT_ALONG_K ? BM : BK))
#define RIGHT_SIZE (RIGHT_PITCH * (RIGHT_ALONG_K ? BN : BK))
#define STAGE (LEFT_SIZE + FACTORS * RIGHT_SIZE)

// Copies `bytes` of 16 and fills the rest with zeros; does not wait.
__device__ __forceinline__ void copy_async(float *to, const float *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes));
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

// d += a * b, with a of 16 by 8 and b of 8 by 8 elements spread over the warp.
__device__ __forceinline__ void mma(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
                   "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// The nearest TF32 number, which has 10 bits of mantissa; what it misses, rounded the same way, is the second one.
__device__ __forceinline__ float nearest(float v) {
    return __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u);
}

template <int N> struct Split {
    float high[N], low[N];

    __device__ __forceinline__ void set(int i, float v) {
        high[i] = nearest(v);
        low[i] = nearest(v - high[i]);
    }
};

// A tile of WIDTH rows or columns of a factor by BK terms; zeros outside of it.
template <bool ALONG_K, int WIDTH>
__device__ __forceinline__ void fetch(float *to, const float *from, int first, int p, int outer, int k) {
    const int line = ALONG_K ? BK : WIDTH, pitch = ALONG_K ? BK + 4 : WIDTH + 8;
    const bool aligned = (ALONG_K ? k : outer) % 4 == 0;
    for (int e = threadIdx.x; e < WIDTH * BK / 4; e += THREADS) {
        const int r = e / (line / 4), c = e % (line / 4) * 4;
        const int o = first + (ALONG_K ? r : c), q = p + (ALONG_K ? c : r);
        const bool inside = o < outer && q < k;
        float *at = to + r * pitch + c;
        if (aligned) {
            copy_async(at, inside ? from + place<ALONG_K>(o, q, outer, k) : from, inside ? 16 : 0);
        } else {
            *(float4 *)at = neighbours<ALONG_K>(from, o, q, outer, k, k);
        }
    }
}

__device__ __forceinline__ void multiply(const float *a, const float *b, float (&total)[ROWS][COLS][4]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane / 4, in_quad = lane % 4;
    const int row = warp / (BN / WN) * WM + quad, col = warp % (BN / WN) * WN + quad;
    float sum[ROWS][COLS][4] = {};
#pragma unroll
    for (int k = 0; k < BK; k += 8) {
        Split<4> left[ROWS];
        Split<2> right[COLS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int r = row + i * 16 + u % 2 * 8, p = k + in_quad + u / 2 * 4;
                left[i].set(u, a[LEFT_ALONG_K ? r * LEFT_PITCH + p : p * LEFT_PITCH + r]);
            }
#pragma unroll
        for (int j = 0; j < COLS; j++)
#pragma unroll
            for (int u = 0; u < 2; u++) {
                const int c = col + j * 8, p = k + in_quad + u * 4;
                right[j].set(u, b[RIGHT_ALONG_K ? c * RIGHT_PITCH + p : p * RIGHT_PITCH + c]);
            }
        // Products of one element do not follow each other, since each would wait for the one before.
#if PASSES == 3
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) mma(sum[i][j], left[i].low, right[j].high);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++) mma(sum[i][j], left[i].high, right[j].low);
#endif
    $add_up$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ __align__(16) float tiles[];
    const int rows = $m$, down = (rows + BM - 1) / BM, across = (n + BN - 1) / BN;
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across);
    const int above = tile / (8 * across) * 8, height = min(8, down - above), inside = tile % (8 * across);
    const int row = (above + inside % height) * BM, col = inside / height * BN;
    $select$
    const Right *const rights[] = {$rights$};

    const auto start = [&](int step) {
        float *to = tiles + step % STAGES * STAGE;
        if (step * BK < k) {
            fetch<LEFT_ALONG_K, BM>(to, $left$, row, step * BK, rows, k);
#pragma unroll
            for (int f = 0; f < FACTORS; f++)
                fetch<RIGHT_ALONG_K, BN>(to + LEFT_SIZE + f * RIGHT_SIZE, rights[f], col, step * BK, n, k);
        }
        copy_commit(); // a group even when it is empty, so that their number tells which tile has come
    };
    float total[2][ROWS][COLS][4] = {};
    for (int step = 0; step < STAGES - 1; step++) start(step);
    for (int step = 0; step * BK < k; step++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); // the tile is here for all, and all are done with the one before
        start(step + STAGES - 1);
        const float *here = tiles + step % STAGES * STAGE;
#pragma unroll
        for (int f = 0; f < FACTORS; f++) multiply(here, here + LEFT_SIZE + f * RIGHT_SIZE, total[f]);
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
                if (r >= rows || q >= n) continue;
                put($out$ + (size_t)r * n + q,
                    finish(total[0][i][j][u], total[1][i][j][u], r, q, rows, n$extra_arguments$));
            }
}
