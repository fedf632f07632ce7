// presage: entry $entry$
// presage: tune BLOCKS = 1056, 132, 528, 4224
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune WIDE = 1, 2, 4
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or BLOCKS == 1056
// presage: grid min(BLOCKS, cdiv(4 * n * h * w, THREADS * WIDE))
// presage: block THREADS
//
// BLOCKS blocks walk over the outputs, in the order of memory. A thread computes WIDE neighbours, which are stored
// together. TAIL also takes the outputs that do not fill a block.

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const int all = 4 * n * h * w, size = TAIL || all < THREADS * WIDE ? all : all / (THREADS * WIDE) * THREADS * WIDE;
    const int apart = gridDim.x * THREADS * WIDE;
    for (int first = (blockIdx.x * THREADS + threadIdx.x) * WIDE; first < size; first += apart) {
        alignas(16) float values[WIDE];
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            const int at = first + i, q = at % (2 * w), p = at / (2 * w) % (2 * h);
            const int y = p / 2, x = q / 2, a = p % 2, b = q % 2;
            const float *image = u + (size_t)(at / (4 * h * w)) * h * w;
            const auto v = [&](int dy, int dx) {
                return image[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
            };
            const auto point = [&]() -> float {
                $upsample$
            };
            values[i] = point();
        }
        if (WIDE == 4) *(float4 *)(out + first) = *(float4 *)values;
        else if (WIDE == 2) *(float2 *)(out + first) = *(float2 *)values;
        else out[first] = values[0];
    }
}
