// presage: problem transpose
// presage: entry transpose

void transpose(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) y[(long)c * rows + r] = x[(long)r * cols + c];
}
