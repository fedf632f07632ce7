// presage: entry $entry$
// presage: tune WIDTH = 1024, 256, 4096
// presage: tune BX = 32, 1, 4, 8, 128
// presage: tune BY = 8, 1, 32
// presage: tune ITEMS = 1, 4
// presage: tune AXIS = 0, 1
// presage: where 32 <= BX * BY and BX * BY <= 1024
// presage: grid WIDTH // BX if AXIS else cdiv(cdiv(n, WIDTH), BY * ITEMS), cdiv(cdiv(n, WIDTH), BY * ITEMS) if AXIS else WIDTH // BX
// presage: block BX, BY
//
// Sees the arrays as planes of rows of WIDTH elements, and gives each block of BX by BY threads ITEMS times BY rows of BX
// columns. AXIS says which way the grid runs: 0 down the rows first, 1 along the columns first.
$element$

__device__ __forceinline__ void apply(const float *in, float *out) {
    $unpack$
    $apply$
}

extern "C" __global__ void __launch_bounds__(BX * BY) $entry$($arguments$) {
    const T *const from[] = {$in_pointers$};
    T *const to[] = {$out_pointers$};
    const int column = (AXIS ? blockIdx.x : blockIdx.y) * BX + threadIdx.x;
    const int row = (AXIS ? blockIdx.y : blockIdx.x) * BY * ITEMS + threadIdx.y;
    T kept[ITEMS][$inputs$];
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const int at = (row + j * BY) * WIDTH + column;
#pragma unroll
        for (int k = 0; k < $inputs$; k++)
            if (at < n) kept[j][k] = from[k][at];
    }
#pragma unroll
    for (int j = 0; j < ITEMS; j++) {
        const int at = (row + j * BY) * WIDTH + column;
        float in[$inputs$], out[$outputs$];
#pragma unroll
        for (int k = 0; k < $inputs$; k++) in[k] = kept[j][k];
        apply(in, out);
#pragma unroll
        for (int k = 0; k < $outputs$; k++)
            if (at < n) to[k][at] = out[k];
    }
}
