// presage: problem transpose
// presage: entry transpose
// presage: tune SIZE = 4, 2, 1
// presage: tune ACROSS = 8, 4, 16, 32
// presage: tune DOWN = 16, 8, 32
// presage: grid cdiv(cols, SIZE * ACROSS) * cdiv(rows, SIZE * DOWN)
// presage: block ACROSS * DOWN
//
// No shared memory: each thread turns a SIZE * SIZE square over in its registers. ACROSS neighbours read along a row;
// the DOWN threads below them write along a column only as far as the cache gathers what they write. So a warp's shape
// trades whole lines of x against whole lines of y.

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ void turn(const float *x, float *y, int rows, int cols, int row, int col) {
    Pack<N> line[N];
#pragma unroll
    for (int i = 0; i < N; i++) line[i] = *(const Pack<N> *)(x + (size_t)(row + i) * cols + col);
#pragma unroll
    for (int k = 0; k < N; k++) {
        Pack<N> turned;
#pragma unroll
        for (int i = 0; i < N; i++) turned.at[i] = line[i].at[k];
        *(Pack<N> *)(y + (size_t)(col + k) * rows + row) = turned;
    }
}

extern "C" __global__ void __launch_bounds__(ACROSS *DOWN)
transpose(const float *__restrict__ x, float *__restrict__ y, int rows, int cols) {
    const int across = (cols + SIZE * ACROSS - 1) / (SIZE * ACROSS);
    const int row = (blockIdx.x / across * DOWN + threadIdx.x / ACROSS) * SIZE;
    const int col = (blockIdx.x % across * ACROSS + threadIdx.x % ACROSS) * SIZE;
    if (rows % SIZE == 0 && cols % SIZE == 0) {
        if (row < rows && col < cols) turn<SIZE>(x, y, rows, cols, row, col);
        return;
    }
    for (int r = row; r < min(rows, row + SIZE); r++)
        for (int c = col; c < min(cols, col + SIZE); c++) y[(size_t)c * rows + r] = x[(size_t)r * cols + c];
}
