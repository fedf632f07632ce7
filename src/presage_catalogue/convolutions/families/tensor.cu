// presage: entry $entry$
// presage: tune BM = 64, 128, 32
// presage: tune BN = 128, 64
// presage: tune BK = 16, 32
// presage: tune WM = 32, 64
// presage: tune WN = 32, 64
// presage: tune STAGES = 3, 2
// presage: tune PRODUCTS = 3, 1
// presage: where PRODUCTS == 3 or BK == 32 and STAGES == 3 and BN == 128
// presage: where 32 * (BM // WM) >= WN
// presage: where BM >= WM and WM * WN <= 2048 and 2 * WM * WN <= BM * BN and BM * BN <= 8 * WM * WN
// presage: grid cdiv(o, BM) * cdiv(n * $area$, BN)
// presage: block 32 * (BM // WM) * (BN // WN)
// presage: shared 4 * STAGES * (BM * (BK + 4) + BK * (BN + 8)) + 4 * (c * $taps$ if c * $taps$ <= 8192 else 0)
//
// The product of the weights (o by channels * taps) and the image's patches (channels * taps by pixels) on the tensor
// cores. Each factor is the sum of two TF32 numbers, and three of their four PRODUCTS are added up (Ootomo and Yokota,
// 2022), or only the first numbers' one. Tensor cores round sums towards zero, so each tile is summed from zero there
// and added to the total by the ordinary units. Patches are gathered, element by element, while the tile before them is
// multiplied; where a patch's k-th element lies comes from a table in shared memory, if that has room for it.

$macros$
#define TAPS (KD * KH * KW)
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

$split_tf32$

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
            for (int j = 0; j < COLS; j++)
                if (PRODUCTS == 3) mma(sum[i][j], left[i].low, right[j].high);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLS; j++)
                if (PRODUCTS == 3) mma(sum[i][j], left[i].high, right[j].low);
    $add_up$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    $sizes$
    extern __shared__ __align__(16) float tiles[];
    int *table = (int *)(tiles + STAGES * STAGE);
    const int terms = c * TAPS, pixels = n * area;
    const bool known = terms <= 8192;
    const auto worked_out = [&](int k) {
        return ((k / TAPS * d + k / (KH * KW) % KD * DD) * h + k / KW % KH * DH) * w + k % KW * DW;
    };
    for (int k = threadIdx.x; known && k < terms; k += THREADS) table[k] = worked_out(k);
    __syncthreads();

    const int groups = (o + BM - 1) / BM, row = blockIdx.x % groups * BM, col = blockIdx.x / groups * BN;
    const int mine = col + threadIdx.x % BN;
    const float *patch = x;
    if (mine < pixels)
        patch += (size_t)(mine / area) * c * d * h * w +
                 (mine / (ow * oh) % od * SD * h + mine / ow % oh * SH) * w + mine % ow * SW;

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
            float *result = y + (size_t)(at / area) * o * area + at % area;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int out = row + warp / (BN / WN) * WM + i * 16 + lane / 4 + u / 2 * 8;
                const float value = total[i][j][u];
                if (out < o) result[(size_t)out * area] = $finish$;
            }
        }
}
