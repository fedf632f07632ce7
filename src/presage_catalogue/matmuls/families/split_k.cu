// presage: entry clear
// presage: grid min(cdiv($m$ * n * $factors$ * $batches$, 1024), 1056) if ATOMIC == 1 else 1
// presage: block 256
// presage: entry parts
// presage: tune PARTS = 4, 2, 8, 16, 32
// presage: tune ATOMIC = 0, 1
// presage: tune BM = 64, 16, 32
// presage: tune BN = 64, 128, 32
// presage: tune BK = 16, 32
// presage: tune TM = 4, 8
// presage: where BM * BN <= 256 * TM * 4 and BM * BN >= 32 * TM * 4
// presage: where ATOMIC == 0 or (BK == 16 and TM == 4 and PARTS != 8)
// presage: where TM == 4 or BK == 16
// presage: where PARTS <= 8 or BN >= 64
// presage: grid $batches$ * cdiv($m$, BM) * cdiv(n, BN), PARTS
// presage: block (BM // TM) * (BN // 4)
// presage: entry combine
// presage: grid cdiv($m$ * n * $batches$, 256)
// presage: block 256
// presage: scratch partial = 4 * $m$ * n * $factors$ * $batches$ * (1 if ATOMIC == 1 else PARTS)
//
// The sum over k$long_sums$ is cut into PARTS, each a product from tiles in shared memory with TM * 4 elements per thread. A part
// is kept by itself until the last launch adds all up, or with ATOMIC added at once to what the first launch cleared.
$operands$

#define THREADS ((BM / TM) * (BN / 4))
#define BATCHES $batches$

extern "C" __global__ void clear($arguments$, float *__restrict__ partial) {
    const size_t size = (size_t)$m$ * n * FACTORS * BATCHES;
    for (size_t e = (size_t)blockIdx.x * 256 + threadIdx.x; ATOMIC && e < size; e += (size_t)gridDim.x * 256)
        partial[e] = 0.0f;
}

// WIDTH rows or columns of a factor from `first` on, BK terms of each, in shared memory with each term as a line.
template <bool ALONG_K, int WIDTH, class T>
__device__ __forceinline__ void fetch(float (*to)[WIDTH + 4], const T *from, int first, int p, int outer, int k,
                                      int end) {
#pragma unroll
    for (int e = threadIdx.x; e < WIDTH * BK / 4; e += THREADS) {
        const int o = ALONG_K ? e / (BK / 4) : e % (WIDTH / 4) * 4;
        const int q = ALONG_K ? e % (BK / 4) * 4 : e / (WIDTH / 4);
        const float4 v = neighbours<ALONG_K>(from, first + o, p + q, outer, k, end);
        if (ALONG_K)
            to[q][o] = v.x, to[q + 1][o] = v.y, to[q + 2][o] = v.z, to[q + 3][o] = v.w;
        else
            *(float4 *)&to[q][o] = v;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) parts($arguments$, float *__restrict__ partial) {
    __shared__ __align__(16) float lefts[BK][BM + 4], tiles[FACTORS][BK][BN + 4];
    const int rows = $m$, down = (rows + BM - 1) / BM, across = (n + BN - 1) / BN;
    const size_t t = blockIdx.x / (down * across), size = (size_t)rows * n * FACTORS * BATCHES;
    const int tile = blockIdx.x % (down * across), row = tile / across * BM, col = tile % across * BN;
    const int share = (k + PARTS * BK - 1) / (PARTS * BK) * BK;
    const int begin = min((int)blockIdx.y * share, k), end = min(begin + share, k);
    $select$
    const Right *const rights[] = {$rights$};
    const int x = threadIdx.x % (BN / 4) * 4, y = threadIdx.x / (BN / 4) * TM;
    float sum[FACTORS][TM][4] = {};
    for (int p = begin; p < end; p += BK) {
        fetch<LEFT_ALONG_K, BM>(lefts, $left$, row, p, rows, k, end);
#pragma unroll
        for (int f = 0; f < FACTORS; f++) fetch<RIGHT_ALONG_K, BN>(tiles[f], rights[f], col, p, n, k, end);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < BK; q++) {
            alignas(16) float left[TM];
#pragma unroll
            for (int i = 0; i < TM; i += 4) *(float4 *)(left + i) = *(const float4 *)&lefts[q][y + i];
#pragma unroll
            for (int f = 0; f < FACTORS; f++) {
                const float4 right = *(const float4 *)&tiles[f][q][x];
#pragma unroll
                for (int i = 0; i < TM; i++) {
                    sum[f][i][0] += left[i] * right.x, sum[f][i][1] += left[i] * right.y;
                    sum[f][i][2] += left[i] * right.z, sum[f][i][3] += left[i] * right.w;
                }
            }
        }
        __syncthreads();
    }
    float *mine = partial + (ATOMIC ? 0 : blockIdx.y * size);
#pragma unroll
    for (int f = 0; f < FACTORS; f++)
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (row + y + i >= rows || col + x + j >= n) continue;
                float *to = mine + ((t * FACTORS + f) * rows + row + y + i) * n + col + x + j;
                if (ATOMIC)
                    atomicAdd(to, sum[f][i][j]);
                else
                    *to = sum[f][i][j];
            }
}

extern "C" __global__ void combine($arguments$, float *__restrict__ partial) {
    const size_t e = (size_t)blockIdx.x * 256 + threadIdx.x, plane = (size_t)$m$ * n, size = plane * FACTORS * BATCHES;
    if (e >= plane * BATCHES) return;
    const size_t within = e % plane;
    float sum[2] = {};
#pragma unroll
    for (int f = 0; f < FACTORS; f++)
        for (int part = 0; part < (ATOMIC ? 1 : PARTS); part++)
            sum[f] += partial[part * size + (e / plane * FACTORS + f) * plane + within];
    put($out$ + e, finish(sum[0], sum[1], within / n, within % n, $m$, n$extra_arguments$));
}
