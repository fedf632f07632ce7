// presage: entry conv2d
// presage: tune BM = 64, 32, 128
// presage: tune BN = 128, 64
// presage: tune BK = 8, 16
// presage: tune TM = 8, 4
// presage: tune TN = 8, 4
// presage: tune TABLE = 1, 0
// presage: where BM // TM % TN == 0 and 64 * TM * TN <= BM * BN and BM * BN <= 512 * TM * TN
// presage: grid cdiv(o, BM) * cdiv(n * (h - r + 1) * (w - s + 1), BN)
// presage: block (BM // TM) * (BN // TN)
// presage: shared 4 * c * r * s if TABLE and c * r * s <= 16384 else 0
//
// A matrix product of the weights (o by c * r * s) and of the image's patches (c * r * s by pixels), which are gathered
// as they are needed. A block computes BM * BN elements from tiles in shared memory, a thread TM * TN of them. Where a
// patch's k-th element lies comes from a TABLE in shared memory, or is worked out each time by divisions.

#define THREADS ((BM / TM) * (BN / TN))
#define A_LOADS ((BM * BK / 4 + THREADS - 1) / THREADS)
#define B_LOADS (BK * BN / THREADS)

$load_four$

struct Patches {
    int h, w, r, s, terms;
    const int *table;

    __device__ int worked_out(int k) const { return (k / (r * s) * h + k / s % r) * w + k % s; }
    __device__ int offset(int k) const { return table ? table[k] : worked_out(k); }
};

$patch_tile$

extern "C" __global__ void __launch_bounds__(THREADS)
conv2d(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, int n, int c, int h, int w,
       int o, int r, int s) {
    __shared__ __align__(16) float shared_a[2][BK][BM + 4], shared_b[2][BK][BN];
    extern __shared__ int table[];
    Patches patches = {h, w, r, s, c * r * s, nullptr};
    if (TABLE && patches.terms <= 16384) {
        for (int k = threadIdx.x; k < patches.terms; k += THREADS) table[k] = patches.worked_out(k);
        __syncthreads();
        patches.table = table;
    }
    const int cols = w - s + 1, area = (h - r + 1) * cols, pixels = n * area;
    const int row = blockIdx.x % ((o + BM - 1) / BM) * BM, col = blockIdx.x / ((o + BM - 1) / BM) * BN;
    const int mine = col + threadIdx.x % BN;
    const float *pixel = nullptr;
    if (mine < pixels) pixel = x + (size_t)(mine / area) * c * h * w + mine % area / cols * w + mine % area % cols;

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
        float *out = y + (size_t)(at / area) * o * area + at % area;
#pragma unroll
        for (int i = 0; i < TM; i++)
            if (row + row_of(i) < o) out[(size_t)(row + row_of(i)) * area] = sum[i][j];
    }
}
