// Four neighbours of a row-major matrix; zeros outside of it.
__device__ float4 load4(const float *from, int row, int col, int rows, int cols) {
    if (row >= rows || col >= cols) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    from += (size_t)row * cols + col;
    if (cols % 4 == 0) return *(const float4 *)from;
    return make_float4(from[0], col + 1 < cols ? from[1] : 0.0f, col + 2 < cols ? from[2] : 0.0f,
                       col + 3 < cols ? from[3] : 0.0f);
}
