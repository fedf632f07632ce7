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
