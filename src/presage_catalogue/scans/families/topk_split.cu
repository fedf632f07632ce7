// presage: entry of_parts
// presage: tune PARTS = 4, 2, 8, 32
// presage: tune WARPS = 4, 1, 2, 8
// presage: tune VECTOR = 4, 1
// presage: grid rows * PARTS
// presage: block 32 * WARPS
// presage: entry of_rows
// presage: grid cdiv(rows, 4)
// presage: block 128
// presage: scratch lists = 4 * $topk$ * rows * PARTS * WARPS
//
// PARTS blocks share a row, and each of their WARPS warps leaves the K largest elements of its share in memory; a
// second launch finds the K largest of those, one warp per row.

#define K $topk$

__device__ void take(float (&list)[K], float value) {
    if (value <= list[K - 1]) return;
#pragma unroll
    for (int k = 0; k < K; k++) {
        const float higher = fmaxf(list[k], value);
        value = fminf(list[k], value);
        list[k] = higher;
    }
}

// The K largest of all lanes' lists, to `out`.
__device__ void warp_largest(float (&list)[K], float *out, bool write) {
    const int lane = threadIdx.x % 32;
    for (int k = 0; k < K; k++) {
        float top = list[0];
        for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
        const int owner = __ffs(__ballot_sync(0xffffffffu, list[0] == top)) - 1;
        if (lane == owner) {
            if (write) out[k] = top;
#pragma unroll
            for (int i = 1; i < K; i++) list[i - 1] = list[i];
            list[K - 1] = -INFINITY;
        }
    }
}

extern "C" __global__ void of_parts($parameters$, float *__restrict__ lists) {
    const int r = blockIdx.x / PARTS, share = (cols / VECTOR + PARTS - 1) / PARTS;
    const float *row = x + (size_t)r * cols;
    const int first = blockIdx.x % PARTS * share;
    float list[K];
#pragma unroll
    for (int k = 0; k < K; k++) list[k] = -INFINITY;
    if (VECTOR == 4 && cols % 4 == 0) {
        for (int v = first + threadIdx.x; v < min(cols / 4, first + share); v += 32 * WARPS) {
            const float4 four = ((const float4 *)row)[v];
            take(list, four.x), take(list, four.y), take(list, four.z), take(list, four.w);
        }
    } else {
        const int each = (cols + PARTS - 1) / PARTS, start = blockIdx.x % PARTS * each;
        for (int c = start + threadIdx.x; c < min(cols, start + each); c += 32 * WARPS) take(list, row[c]);
    }
    warp_largest(list, lists + (size_t)(blockIdx.x * WARPS + threadIdx.x / 32) * K, true);
}

extern "C" __global__ void of_rows($parameters$, const float *__restrict__ lists) {
    const int r = blockIdx.x * 4 + threadIdx.x / 32;
    float list[K];
#pragma unroll
    for (int k = 0; k < K; k++) list[k] = -INFINITY;
    if (r < rows)
        for (int i = threadIdx.x % 32; i < PARTS * WARPS * K; i += 32)
            take(list, lists[(size_t)r * PARTS * WARPS * K + i]);
    warp_largest(list, y + (size_t)r * K, r < rows);
}
