#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLS; j++) mma(sum[i][j], left[i].high, right[j].high);
}
#pragma unroll
for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int j = 0; j < COLS; j++)
#pragma unroll
        for (int u = 0; u < 4; u++) total[i][j][u] += sum[i][j][u];
