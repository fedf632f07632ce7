// presage: entry $entry$
// presage: tune BM = 64, 32, 128
// presage: tune BN = 128, 64
// presage: tune BK = 8, 16
// presage: tune TM = 8, 4
// presage: tune TN = 8, 4
// presage: tune TABLE = 1, 0
// presage: where BM // TM % TN == 0 and 64 * TM * TN <= BM * BN and BM * BN <= 512 * TM * TN
// presage: grid cdiv(o, BM) * cdiv(n * $area$, BN)
// presage: block (BM // TM) * (BN // TN)
// presage: shared 4 * c * $taps$ if TABLE and c * $taps$ <= 16384 else 0
//
// A matrix product of the weights (o by channels * taps) and of the image's patches (channels * taps by pixels), which
// are gathered as they are needed. A block computes BM * BN elements from tiles in shared memory, a thread TM * TN of them. Where a
// patch's k-th element lies comes from a TABLE in shared memory, or is worked out each time by divisions.

$macros$
#define TAPS (KD * KH * KW)
#define THREADS ((BM / TM) * (BN / TN))
#define A_LOADS ((BM * BK / 4 + THREADS - 1) / THREADS)
#define B_LOADS (BK * BN / THREADS)

$load_four$

struct Patches {
    int d, h, w, terms;
    const int *table;

    __device__ int worked_out(int k) const {
        return ((k / TAPS * d + k / (KH * KW) % KD * DD) * h + k / KW % KH * DH) * w + k % KW * DW;
    }
    __device__ int offset(int k) const { return table ? table[k] : worked_out(k); }
};

$patch_tile$

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    __shared__ __align__(16) float shared_a[2][BK][BM + 4], shared_b[2][BK][BN];
    extern __shared__ int table[];
    $sizes$
    Patches patches = {d, h, w, c * TAPS, nullptr};
    if (TABLE && patches.terms <= 16384) {
        for (int k = threadIdx.x; k < patches.terms; k += THREADS) table[k] = patches.worked_out(k);
        __syncthreads();
        patches.table = table;
    }
    const int pixels = n * area;
    const int row = blockIdx.x % ((o + BM - 1) / BM) * BM, col = blockIdx.x / ((o + BM - 1) / BM) * BN;
    const int mine = col + threadIdx.x % BN;
    const float *pixel = nullptr;
    if (mine < pixels)
        pixel = x + (size_t)(mine / area) * c * d * h * w +
                (mine / (ow * oh) % od * SD * h + mine / ow % oh * SH) * w + mine % ow * SW;

    float sum[TM][TN] = {};
    Tile tile;
    tile.load(weight, pixel, patches, row, 0, o);
    for (int k = 0, buffer = 0; k < patches.terms; k += BK, buffer ^= 1) {
        tile.store(shared_a[buffer], shared_b[buffer]);
        __syncthreads();
        if (k + BK < patches.terms) tile.load(weight, pixel, patches, row, k + BK, o);
        multiply(shared_a[buffer], shared_b[buffer], sum);
    }
#pragma unroll
    for (int j = 0; j < TN; j++) {
        const int at = col + col_of(j);
        if (at >= pixels) continue;
        float *to = y + (size_t)(at / area) * o * area + at % area;
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const int out = row + row_of(i);
            const float value = sum[i][j];
            if (out < o) to[(size_t)out * area] = $finish$;
        }
    }
}
