// presage: entry $entry$
// presage: tune ACROSS = 32, 128, 256
// presage: tune DOWN = 8, 1, 2
// presage: tune SPAN = 8, 1, 64
// presage: tune FORM = 1, 0, 2
// presage: tune WALK = 0, 1
// presage: where SPAN > 1 or WALK == 0
// presage: grid cdiv($cols$, ACROSS) * cdiv($rows$, DOWN * SPAN)
// presage: block ACROSS, DOWN
//
// A thread keeps to a column and goes down SPAN rows, so that what depends on the column alone is found once: DOWN rows
// apart (WALK 0) or neighbouring ones (1). FORM is the way to find the power in the term.

#define ANGLE float

__device__ __forceinline__ float term(int r, int c, $sizes$) {
    $term$
}

extern "C" __global__ void __launch_bounds__(ACROSS *DOWN) $entry$($arguments$) {
    const int height = $rows$, width = $cols$, across = (width + ACROSS - 1) / ACROSS;
    const int c = blockIdx.x % across * ACROSS + threadIdx.x;
    const int first = blockIdx.x / across * DOWN * SPAN + (WALK ? threadIdx.y * SPAN : threadIdx.y);
    if (c >= width) return;
#pragma unroll 4
    for (int k = 0; k < SPAN; k++) {
        const int r = first + k * (WALK ? 1 : DOWN);
        if (r < height) y[(size_t)r * width + c] = x[(size_t)r * width + c] + term(r, c, $names$);
    }
}
