// presage: entry $entry$
// presage: grid cdiv(n, 16) * cdiv($m$, 16)
// presage: block 16, 16
//
// $summary$
$operands$

extern "C" __global__ void $entry$($arguments$) {
    const int rows = $m$, across = (n + 15) / 16;
    const int j = blockIdx.x % across * 16 + threadIdx.x;
    const int i = blockIdx.x / across * 16 + threadIdx.y;
    if (i >= rows || j >= n) return;
    const Right *const rights[] = {$rights$};
    float sum[2] = {};
    for (int f = 0; f < FACTORS; f++)
        for (int p = 0; p < k; p++)
            sum[f] += number($left$[place<LEFT_ALONG_K>(i, p, rows, k)]) *
                      number(rights[f][place<RIGHT_ALONG_K>(j, p, n, k)]);
    put($out$ + (size_t)i * n + j, finish(sum[0], sum[1], i, j, rows, n$extra_arguments$));
}
