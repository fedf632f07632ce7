// presage: problem conv2d
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

// Four neighbours of a row-major matrix; zeros outside of it.
__device__ float4 load4(const float *from, int row, int col, int rows, int cols) {
    if (row >= rows || col >= cols) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    from += (size_t)row * cols + col;
    if (cols % 4 == 0) return *(const float4 *)from;
    return make_float4(from[0], col + 1 < cols ? from[1] : 0.0f, col + 2 < cols ? from[2] : 0.0f,
                       col + 3 < cols ? from[3] : 0.0f);
}

struct Patches {
    int h, w, r, s, terms;
    const int *table;

    __device__ int worked_out(int k) const { return (k / (r * s) * h + k / s % r) * w + k % s; }
    __device__ int offset(int k) const { return table ? table[k] : worked_out(k); }
};

struct Tile {
    float4 a[A_LOADS];
    float b[B_LOADS];

    // `pixel` is the patch of this thread's column of the tile; null past the last.
    __device__ void load(const float *weight, const float *pixel, const Patches &patches, int row, int k, int o) {
#pragma unroll
        for (int u = 0; u < A_LOADS; u++) {
            const int i = threadIdx.x + u * THREADS;
            if (i < BM * BK / 4) a[u] = load4(weight, row + i / (BK / 4), k + i % (BK / 4) * 4, o, patches.terms);
        }
#pragma unroll
        for (int u = 0; u < B_LOADS; u++) {
            const int at = k + (threadIdx.x + u * THREADS) / BN;
            b[u] = pixel && at < patches.terms ? pixel[patches.offset(at)] : 0.0f;
        }
    }

    __device__ void store(float (*to_a)[BM + 4], float (*to_b)[BN]) {
#pragma unroll
        for (int u = 0; u < A_LOADS; u++) {
            const int i = threadIdx.x + u * THREADS, row = i / (BK / 4), k = i % (BK / 4) * 4;
            if (i >= BM * BK / 4) continue;
            to_a[k][row] = a[u].x, to_a[k + 1][row] = a[u].y, to_a[k + 2][row] = a[u].z, to_a[k + 3][row] = a[u].w;
        }
#pragma unroll
        for (int u = 0; u < B_LOADS; u++) to_b[(threadIdx.x + u * THREADS) / BN][threadIdx.x % BN] = b[u];
    }
};

// A thread's rows are groups of four, BM / (TM / 4) apart: neighbours then read neighbouring words. So with columns.
__device__ int row_of(int i) { return i / 4 * (BM / (TM / 4)) + threadIdx.x / (BN / TN) * 4 + i % 4; }
__device__ int col_of(int j) { return j / 4 * (BN / (TN / 4)) + threadIdx.x % (BN / TN) * 4 + j % 4; }

__device__ void multiply(const float (*a)[BM + 4], const float (*b)[BN], float (&sum)[TM][TN]) {
#pragma unroll
    for (int k = 0; k < BK; k++) {
        alignas(16) float left[TM], right[TN];
#pragma unroll
        for (int i = 0; i < TM; i += 4) *(float4 *)(left + i) = *(const float4 *)&a[k][row_of(i)];
#pragma unroll
        for (int j = 0; j < TN; j += 4) *(float4 *)(right + j) = *(const float4 *)&b[k][col_of(j)];
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) sum[i][j] += left[i] * right[j];
    }
}

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
