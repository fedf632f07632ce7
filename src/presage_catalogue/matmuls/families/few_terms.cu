// presage: entry $entry$
// presage: tune ACROSS = 64, 32, 128, 256
// presage: tune DOWN = 4, 1, 8
// presage: tune ROWS = 8, 1, 4, 32
// presage: tune STREAM = 0, 1
// presage: tune WIDTH = 4, 1
// presage: tune TERMS = 16, 8
// presage: where ACROSS * DOWN <= 1024 and ACROSS * DOWN >= 64
// presage: where TERMS == 16 or (STREAM == 0 and DOWN == 1)
// presage: where WIDTH == 4 or STREAM == 0
// presage: grid cdiv(n, ACROSS * WIDTH), cdiv($m$, DOWN * ROWS)
// presage: block ACROSS, DOWN
//
// For few terms:$few_terms$ a thread holds up to TERMS terms of WIDTH neighbouring columns and goes down ROWS rows with
// them. STREAM does not keep the result in cache.
$operands$

extern "C" __global__ void __launch_bounds__(ACROSS * DOWN) $entry$($arguments$) {
    const int rows = $m$, col = (blockIdx.x * ACROSS + threadIdx.x) * WIDTH;
    const int first = blockIdx.y * DOWN * ROWS + threadIdx.y;
    if (col >= n) return;
    float right[TERMS][WIDTH];
#pragma unroll
    for (int p = 0; p < TERMS; p++)
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            right[p][j] = p < k && col + j < n ? number($rights$[(size_t)p * n + col + j]) : 0.0f;
    for (int r = 0; r < ROWS; r++) {
        const int i = first + r * DOWN;
        if (i >= rows) return;
        float sum[WIDTH] = {};
#pragma unroll
        for (int p = 0; p < TERMS; p++) {
            if (p >= k) break;
            const float left = number($left$[(size_t)i * k + p]);
#pragma unroll
            for (int j = 0; j < WIDTH; j++) sum[j] += left * right[p][j];
        }
#pragma unroll
        for (int j = 0; j < WIDTH; j++) sum[j] = finish(sum[j], 0.0f, i, min(col + j, n - 1), rows, n$extra_arguments$);
        Out *to = $out$ + (size_t)i * n + col;
        if (WIDTH == 4 && n % 4 == 0) {
            const float4 v = make_float4(sum[0], sum[1 % WIDTH], sum[2 % WIDTH], sum[3 % WIDTH]);
            if (STREAM)
                __stcs((float4 *)to, v);
            else
                put_four(to, v);
            continue;
        }
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            if (col + j < n) put(to + j, sum[j]);
    }
}
