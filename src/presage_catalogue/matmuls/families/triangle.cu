// presage: entry parts
// presage: tune TILE = 64, 32, 128
// presage: tune SIDE = 4, 8
// presage: tune BK = 16, 8, 32
// presage: tune PARTS = 1, 4, 16
// presage: tune PAD = 4, 0
// presage: where TILE * TILE <= 1024 * SIDE * SIDE and TILE * TILE >= 32 * SIDE * SIDE
// presage: where PAD == 4 or BK == 16
// presage: grid cdiv(n, TILE) * (cdiv(n, TILE) + 1) // 2, PARTS
// presage: block (TILE // SIDE) * (TILE // SIDE)
// presage: entry mirror
// presage: grid cdiv(n, 16), cdiv(n, 16)
// presage: block 16, 16
// presage: scratch partial = 4 * n * n * PARTS
//
// The result is symmetric,$symmetric$ so only its tiles of TILE * TILE on and above the diagonal are computed, SIDE * SIDE elements per
// thread, in PARTS of the sums; a second launch adds the parts up and writes each element to both of its places.
$operands$

#define ACROSS (TILE / SIDE)
#define THREADS (ACROSS * ACROSS)

extern "C" __global__ void __launch_bounds__(THREADS) parts($arguments$, float *__restrict__ partial) {
    __shared__ __align__(16) float left[BK][TILE + PAD], right[BK][TILE + PAD];
    const int tiles = (n + TILE - 1) / TILE;
    int down = 0, rest = blockIdx.x;
    while (rest >= tiles - down) rest -= tiles - down++;
    const int row = down * TILE, col = (down + rest) * TILE;
    const int share = (k + PARTS * BK - 1) / (PARTS * BK) * BK;
    const int begin = min((int)blockIdx.y * share, k), end = min(begin + share, k);
    const int x = threadIdx.x % ACROSS * SIDE, y = threadIdx.x / ACROSS * SIDE;
    float sum[SIDE][SIDE] = {};
    for (int start = begin; start < end; start += BK) {
        for (int e = threadIdx.x; e < BK * TILE / 4; e += THREADS) {
            const int q = e / (TILE / 4), o = e % (TILE / 4) * 4;
            *(float4 *)&left[q][o] = neighbours<false>($left$, row + o, start + q, n, k, end);
            *(float4 *)&right[q][o] = neighbours<false>($left$, col + o, start + q, n, k, end);
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            float u[SIDE], v[SIDE];
#pragma unroll
            for (int i = 0; i < SIDE; i++) u[i] = left[q][y + i], v[i] = right[q][x + i];
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++) sum[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
    float *to = partial + (size_t)blockIdx.y * n * n;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++)
            if (row + y + i < n && col + x + j < n) to[(size_t)(row + y + i) * n + col + x + j] = sum[i][j];
}

extern "C" __global__ void mirror($arguments$, float *__restrict__ partial) {
    const int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= n || j >= n) return;
    const size_t at = i / TILE <= j / TILE ? (size_t)i * n + j : (size_t)j * n + i;
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part++) sum += partial[(size_t)part * n * n + at];
    put($out$ + (size_t)i * n + j, finish(sum, 0.0f, i, j, n, n$extra_arguments$));
}
