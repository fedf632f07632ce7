// presage: entry $entry$
$run$
// presage: tune WIDE = 4, 1, 2, 8
// presage: tune THREADS = 128, 64, 256, 512
// presage: tune STORE = 0, 1
// presage: tune TAIL = 1, 0
// presage: where ROWS * WIDE <= 64 and (STORE == 0 or WIDE >= 2 and WIDE <= 4) and (TAIL == 1 or WIDE == 4 and STORE == 1)
// presage: grid cdiv($planes$ * cdiv($h$, ROWS) * max(1, cdiv(w, WIDE) if TAIL else w // WIDE), THREADS)
// presage: block THREADS
//
// A thread computes ROWS rows of WIDE neighbouring outputs. It goes down the rows of x that they need, each once, with
// what it reads of the row in registers, and adds it to every output that it counts for. STORE writes outputs as
// vectors where the rows' length allows. TAIL also takes the columns that do not fill a group.

#define HIGH $rows$
#define COLS $cols$

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    $height$
    const int groups = max(1, TAIL ? (w + WIDE - 1) / WIDE : w / WIDE), strips = (h + ROWS - 1) / ROWS;
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread >= n * c * groups * strips) return;
    const int q = thread % groups * WIDE, p = thread / groups % strips * ROWS, plane = thread / groups / strips;
    const int channel = plane % c;
    const float *from = x + (size_t)plane * h * w;
    float by[HIGH][COLS], sum[ROWS][WIDE];
#pragma unroll
    for (int k = 0; k < HIGH * COLS; k++) by[k / COLS][k % COLS] = weight[channel * HIGH * COLS + k];
#pragma unroll
    for (int i = 0; i < ROWS * WIDE; i++) sum[i / WIDE][i % WIDE] = $begin$;
#pragma unroll
    for (int u = 0; u < ROWS + HIGH - 1; u++) {
        const int row = p - $above$ + u;
        float next[WIDE + COLS - 1];
#pragma unroll
        for (int j = 0; j < WIDE + COLS - 1; j++) {
            const int col = q - $left$ + j;
            next[j] = row >= 0 && row < h && col >= 0 && col < w ? from[row * w + col] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (u - i < 0 || u - i >= HIGH) continue;
#pragma unroll
            for (int v = 0; v < COLS; v++)
#pragma unroll
                for (int j = 0; j < WIDE; j++) sum[i][j] += by[u - i][v] * next[j + v];
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        if (p + i >= h) break;
        float *to = y + ((size_t)plane * h + p + i) * w + q;
        alignas(16) float values[WIDE];
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const float value = sum[i][j];
            values[j] = $silu$;
        }
        if (STORE && WIDE == 4 && w % 4 == 0) *(float4 *)to = *(float4 *)values;
        else if (STORE && WIDE == 2 && w % 2 == 0) *(float2 *)to = *(float2 *)values;
        else
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                if (q + j < w) to[j] = values[j];
    }
}
