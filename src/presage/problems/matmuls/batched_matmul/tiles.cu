// presage: problem batched_matmul
// presage: entry batched_matmul
// presage: tune BM = 64, 32, 128
// presage: tune BN = 64, 32, 128
// presage: tune BK = 16, 8, 32
// presage: tune TM = 8, 4
// presage: tune TN = 4, 8
// presage: tune AHEAD = 1, 0
// presage: where 32 * TM * TN <= BM * BN and BM * BN <= 512 * TM * TN
// presage: where BM * BK <= 2048 and BN * BK <= 2048
// presage: where TM == 8 or TN == 4
// presage: where AHEAD == 1 or BK == 16
// presage: grid batch * cdiv(m, BM) * cdiv(n, BN)
// presage: block (BM // TM) * (BN // TN)
//
// A block computes BM * BN elements of one product from tiles in shared memory, a thread TM * TN of them in registers.
// The next tile is fetched while this one is multiplied; AHEAD has two buffers and so one barrier less per tile.

#define THREADS ((BM / TM) * (BN / TN))
#define A_LOADS ((BM * BK / 4 + THREADS - 1) / THREADS)
#define B_LOADS ((BK * BN / 4 + THREADS - 1) / THREADS)

// Four neighbours of a row-major matrix; zeros outside of it.
__device__ float4 load4(const float *from, int row, int col, int rows, int cols) {
    if (row >= rows || col >= cols) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    from += (size_t)row * cols + col;
    if (cols % 4 == 0) return *(const float4 *)from;
    return make_float4(from[0], col + 1 < cols ? from[1] : 0.0f, col + 2 < cols ? from[2] : 0.0f,
                       col + 3 < cols ? from[3] : 0.0f);
}

struct Tile {
    float4 a[A_LOADS], b[B_LOADS];

    __device__ void load(const float *from_a, const float *from_b, int row, int col, int p, int m, int n, int k,
                         int end) {
#pragma unroll
        for (int u = 0; u < A_LOADS; u++) {
            const int i = threadIdx.x + u * THREADS;
            if (i < BM * BK / 4) a[u] = load4(from_a, row + i / (BK / 4), p + i % (BK / 4) * 4, m, k);
        }
#pragma unroll
        for (int u = 0; u < B_LOADS; u++) {
            const int i = threadIdx.x + u * THREADS;
            if (i < BK * BN / 4) b[u] = load4(from_b, p + i / (BN / 4), col + i % (BN / 4) * 4, end, n);
        }
    }

    // a is stored with its columns as rows, so that a thread's rows lie side by side.
    __device__ void store(float (*to_a)[BM + 4], float (*to_b)[BN]) {
#pragma unroll
        for (int u = 0; u < A_LOADS; u++) {
            const int i = threadIdx.x + u * THREADS, r = i / (BK / 4), p = i % (BK / 4) * 4;
            if (i >= BM * BK / 4) continue;
            to_a[p][r] = a[u].x, to_a[p + 1][r] = a[u].y, to_a[p + 2][r] = a[u].z, to_a[p + 3][r] = a[u].w;
        }
#pragma unroll
        for (int u = 0; u < B_LOADS; u++) {
            const int i = threadIdx.x + u * THREADS;
            if (i < BK * BN / 4) *(float4 *)&to_b[i / (BN / 4)][i % (BN / 4) * 4] = b[u];
        }
    }
};

// A thread's TM rows are groups of four, BM / (TM / 4) apart: neighbours then read neighbouring words. So with columns.
__device__ int row_of(int i) { return i / 4 * (BM / (TM / 4)) + threadIdx.x / (BN / TN) * 4 + i % 4; }
__device__ int col_of(int j) { return j / 4 * (BN / (TN / 4)) + threadIdx.x % (BN / TN) * 4 + j % 4; }

__device__ void multiply(const float (*a)[BM + 4], const float (*b)[BN], float (&sum)[TM][TN]) {
#pragma unroll
    for (int p = 0; p < BK; p++) {
        alignas(16) float left[TM], right[TN];
#pragma unroll
        for (int i = 0; i < TM; i += 4) *(float4 *)(left + i) = *(const float4 *)&a[p][row_of(i)];
#pragma unroll
        for (int j = 0; j < TN; j += 4) *(float4 *)(right + j) = *(const float4 *)&b[p][col_of(j)];
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) sum[i][j] += left[i] * right[j];
    }
}

// The product of a's rows from `row` and b's columns from `col`, over the terms from `p` to `end`.
__device__ void tile_product(const float *a, const float *b, float *c, int row, int col, int p, int end, int m, int n,
                             int k) {
    __shared__ __align__(16) float shared_a[AHEAD + 1][BK][BM + 4], shared_b[AHEAD + 1][BK][BN];
    float sum[TM][TN] = {};
    Tile tile;
    tile.load(a, b, row, col, p, m, n, k, end);
    for (int buffer = 0; p < end; p += BK) {
        if (!AHEAD) __syncthreads(); // the last tile has been read
        tile.store(shared_a[buffer], shared_b[buffer]);
        __syncthreads();
        if (p + BK < end) tile.load(a, b, row, col, p + BK, m, n, k, end);
        multiply(shared_a[buffer], shared_b[buffer], sum);
        if (AHEAD) buffer ^= 1;
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int r = row + row_of(i), q = col + col_of(j);
            if (r >= m) continue;
            if (n % 4 == 0 && q < n) {
                const float *s = sum[i] + j;
                *(float4 *)(c + (size_t)r * n + q) = make_float4(s[0], s[1], s[2], s[3]);
                continue;
            }
#pragma unroll
            for (int u = 0; u < 4; u++)
                if (q + u < n) c[(size_t)r * n + q + u] = sum[i][j + u];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
batched_matmul(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int batch, int m, int n,
               int k) {
    const int down = (m + BM - 1) / BM, across = (n + BN - 1) / BN;
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across);
    // All three matrices of a product start at multiples of 16 bytes exactly when their rows do.
    tile_product(a + t * m * k, b + t * k * n, c + t * m * n, tile / across * BM, tile % across * BN, 0, k, m, n, k);
}
