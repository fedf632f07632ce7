// presage: problem sum
// presage: entry sum_rows

void sum_rows(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f;
        for (int c = 0; c < cols; c++) sum += x[(long)r * cols + c];
        y[r] = sum;
    }
}
