// presage: problem transpose
// presage: entry transpose
// presage: grid cdiv(cols, 32), cdiv(rows, 8)
// presage: block 32, 8

extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols) {
    const int c = blockIdx.x * 32 + threadIdx.x;
    const int r = blockIdx.y * 8 + threadIdx.y;
    if (r < rows && c < cols) y[(size_t)c * rows + r] = x[(size_t)r * cols + c];
}
