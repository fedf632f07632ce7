// presage: entry $entry$
// presage: tune THREADS = 256, 32, 64, 128
// presage: tune VECTOR = 4, 1, 2
// presage: tune UNROLL = 8, 1, 4, 16
// presage: grid cdiv(cols, THREADS * VECTOR)
// presage: block THREADS
//
// One thread for VECTOR neighbouring columns, down all the rows, UNROLL of them at a time.

$fold$

#define INPUTS $inputs$
struct alignas(4 * VECTOR) Pack { float at[VECTOR]; };

__device__ Pack load(const float *from, bool whole, int left) {
    if (whole) return *(const Pack *)from;
    Pack pack;
#pragma unroll
    for (int i = 0; i < VECTOR; i++) pack.at[i] = i < left ? from[i] : 0.0f;
    return pack;
}

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($column_arguments$) {
    const float *const from[] = {$in_pointers$};
    const int first = (blockIdx.x * THREADS + threadIdx.x) * VECTOR;
    if (first >= cols) return;
    const bool whole = cols % VECTOR == 0;
    State s[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++) s[i] = empty();
#pragma unroll UNROLL
    for (int r = 0; r < rows; r++) {
        Pack packs[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; k++) packs[k] = load(from[k] + (size_t)r * cols + first, whole, cols - first);
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            float in[INPUTS];
#pragma unroll
            for (int k = 0; k < INPUTS; k++) in[k] = packs[k].at[i];
            include(&s[i], in, r);
        }
    }
    for (int i = 0; i < VECTOR; i++)
        if (first + i < cols) y[first + i] = finish(&s[i], rows);
}
