// presage: problem transpose
// presage: entry transpose
// presage: tune TILE = 32, 64
// presage: tune THREADS = 256, 128, 512
// presage: tune VECTOR = 1, 4
// presage: tune PAD = 1, 0
// presage: tune ORDER = 0, 1
// presage: grid cdiv(rows, TILE) * cdiv(cols, TILE)
// presage: block THREADS
//
// A block turns a TILE * TILE square over in shared memory, so that both sides see whole lines. PAD shifts each line of
// the square by one bank; without it a column lies in few banks. VECTOR floats move at once where the alignment allows
// it. ORDER 0 takes tiles along x's rows, 1 along y's.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N>
__device__ void turn(const float *x, float *y, int rows, int cols, int row, int col, float (*tile)[TILE + PAD]) {
    for (int i = threadIdx.x; i < TILE * TILE / N; i += THREADS) {
        const int r = i / (TILE / N), c = i % (TILE / N) * N;
        if (row + r < rows && col + c < cols) {
            const Pack<N> pack = *(const Pack<N> *)(x + (size_t)(row + r) * cols + col + c);
#pragma unroll
            for (int k = 0; k < N; k++) tile[r][c + k] = pack.at[k];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE / N; i += THREADS) {
        const int c = i / (TILE / N), r = i % (TILE / N) * N;
        if (row + r < rows && col + c < cols) {
            Pack<N> pack;
#pragma unroll
            for (int k = 0; k < N; k++) pack.at[k] = tile[r + k][c];
            *(Pack<N> *)(y + (size_t)(col + c) * rows + row + r) = pack;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
transpose(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    __shared__ float tile[TILE][TILE + PAD];
    const int down = (rows + TILE - 1) / TILE, across = (cols + TILE - 1) / TILE;
    const int row = (ORDER ? blockIdx.x % down : blockIdx.x / across) * TILE;
    const int col = (ORDER ? blockIdx.x / down : blockIdx.x % across) * TILE;
    if (rows % VECTOR == 0 && cols % VECTOR == 0) turn<VECTOR>(x, y, rows, cols, row, col, tile);
    else turn<1>(x, y, rows, cols, row, col, tile);
}
