// presage: entry $entry$
// presage: tune BM = 64, 128, 32, 16
// presage: tune BN = 64, 128, 256
// presage: tune BK = 32, 64, 16
// presage: tune WM = 32, 16, 64
// presage: tune WN = 32, 64
// presage: tune AHEAD = 1, 0
// presage: tune SUM = float, half
// presage: where BM >= WM and 2 * WM * WN <= BM * BN and BM * BN <= 16 * WM * WN and WM * WN <= 4096
// presage: where BK >= 32 or AHEAD == 1
// presage: where SUM == 'float' or (BK == 64 and AHEAD == 1)
// presage: where BM > 16 or BN <= 128
// presage: grid $batches$ * cdiv($m$, BM) * cdiv(n, BN)
// presage: block 32 * (BM // WM) * (BN // WN)
// presage: shared max(2 * (AHEAD + 1) * (BM * BK + BN * BK + 8 * max(BM, BK) + 8 * max(BN, BK)), 1024 * (BM // WM) * (BN // WN))
//
// On the tensor cores in float16,$tensor_half$ sums kept in SUM. A warp computes WM * WN elements of the block's BM * BN from tiles in
// shared memory; AHEAD has two of them, and the next is on its way while one is multiplied.
$operands$
#include <mma.h>
using namespace nvcuda;

#define WARPS ((BM / WM) * (BN / WN))
#define THREADS (32 * WARPS)
#define ROWS (WM / 16)
#define COLS (WN / 16)
// Tiles lie in shared memory as they do outside; lines are 16 bytes longer, so that they start in different banks.
#define LEFT_PITCH (LEFT_ALONG_K ? BK + 8 : BM + 8)
#define RIGHT_PITCH (RIGHT_ALONG_K ? BK + 8 : BN + 8)
#define LEFT_SIZE (LEFT_PITCH * (LEFT_ALONG_K ? BM : BK))
#define RIGHT_SIZE (RIGHT_PITCH * (RIGHT_ALONG_K ? BN : BK))
#define STAGE (LEFT_SIZE + RIGHT_SIZE)

struct __align__(16) Eight {
    half v[8];
};
__device__ __forceinline__ half to_half(half v) { return v; }
__device__ __forceinline__ half to_half(signed char v) { return __float2half((float)v); }
__device__ __forceinline__ Eight eight(const half *from) { return *(const Eight *)from; }
__device__ __forceinline__ Eight eight(const signed char *from) {
    union {
        int2 whole;
        signed char v[8];
    } bytes;
    bytes.whole = *(const int2 *)from;
    Eight out;
#pragma unroll
    for (int u = 0; u < 8; u++) out.v[u] = to_half(bytes.v[u]);
    return out;
}

// A tile of WIDTH rows or columns of a factor by BK terms on its way to shared memory; zeros outside of the factor.
template <bool ALONG_K, int WIDTH> struct Piece {
    static const int LINE = ALONG_K ? BK : WIDTH, LOADS = (WIDTH * BK / 8 + THREADS - 1) / THREADS;
    Eight held[LOADS];

    template <class T> __device__ __forceinline__ void load(const T *from, int first, int p, int outer, int k) {
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int e = threadIdx.x + u * THREADS, r = e / (LINE / 8), c = e % (LINE / 8) * 8;
            if (e >= WIDTH * BK / 8) continue;
            const int o = first + (ALONG_K ? r : c), q = p + (ALONG_K ? c : r), left = ALONG_K ? k - q : outer - o;
            const T *at = from + place<ALONG_K>(o, q, outer, k);
            if (o < outer && q < k && (ALONG_K ? k : outer) % 8 == 0) {
                held[u] = eight(at);
                continue;
            }
#pragma unroll
            for (int v = 0; v < 8; v++)
                held[u].v[v] = o < outer && q < k && v < left ? to_half(at[v]) : __float2half(0.0f);
        }
    }

    __device__ __forceinline__ void store(half *to) {
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int e = threadIdx.x + u * THREADS;
            if (e < WIDTH * BK / 8) *(Eight *)(to + e / (LINE / 8) * (LINE + 8) + e % (LINE / 8) * 8) = held[u];
        }
    }
};

#if LEFT_ALONG_K
typedef wmma::row_major LeftOrder;
#else
typedef wmma::col_major LeftOrder;
#endif
#if RIGHT_ALONG_K
typedef wmma::col_major RightOrder;
#else
typedef wmma::row_major RightOrder;
#endif

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    extern __shared__ __align__(128) unsigned char memory[];
    half *tiles = (half *)memory;
    const int rows = $m$, down = (rows + BM - 1) / BM, across = (n + BN - 1) / BN;
    const size_t t = blockIdx.x / (down * across);
    const int tile = blockIdx.x % (down * across);
    const int above = tile / (8 * across) * 8, height = min(8, down - above), inside = tile % (8 * across);
    const int row = (above + inside % height) * BM, col = inside / height * BN;
    $select$
    const Right *const right = $rights$;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;

    wmma::fragment<wmma::accumulator, 16, 16, 16, SUM> sum[ROWS][COLS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++) wmma::fill_fragment(sum[i][j], (SUM)0.0f);

    Piece<LEFT_ALONG_K, BM> next_left;
    Piece<RIGHT_ALONG_K, BN> next_right;
    next_left.load($left$, row, 0, rows, k);
    next_right.load(right, col, 0, n, k);
    for (int p = 0, buffer = 0; p < k; p += BK) {
        half *here = tiles + buffer * STAGE;
        if (!AHEAD) __syncthreads(); // the last tile has been read
        next_left.store(here);
        next_right.store(here + LEFT_SIZE);
        __syncthreads();
        if (p + BK < k) {
            next_left.load($left$, row, p + BK, rows, k);
            next_right.load(right, col, p + BK, n, k);
        }
#pragma unroll
        for (int q = 0; q < BK; q += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, LeftOrder> a[ROWS];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, RightOrder> b[COLS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int r = warp_row + i * 16;
                wmma::load_matrix_sync(a[i], here + (LEFT_ALONG_K ? r * LEFT_PITCH + q : q * LEFT_PITCH + r), LEFT_PITCH);
            }
#pragma unroll
            for (int j = 0; j < COLS; j++) {
                const int c = warp_col + j * 16;
                wmma::load_matrix_sync(b[j],
                                       here + LEFT_SIZE + (RIGHT_ALONG_K ? c * RIGHT_PITCH + q : q * RIGHT_PITCH + c),
                                       RIGHT_PITCH);
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < COLS; j++) wmma::mma_sync(sum[i][j], a[i], b[j], sum[i][j]);
        }
        if (AHEAD) buffer ^= 1;
    }

    __syncthreads(); // the tiles are done with: each warp lays 16 * 16 sums out there in turn
    SUM *sums = (SUM *)memory + warp * 256;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            wmma::store_matrix_sync(sums, sum[i][j], 16, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int e = lane; e < 256; e += 32) {
                const int r = row + warp_row + i * 16 + e / 16, q = col + warp_col + j * 16 + e % 16;
                if (r < rows && q < n)
                    put($out$ + (size_t)r * n + q, finish(number(sums[e]), 0.0f, r, q, rows, n$extra_arguments$));
            }
            __syncwarp();
        }
}
