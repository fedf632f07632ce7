// presage: tune PARTS = 4, 1, 2, 8, 32
// presage: tune THREADS = 256, 64, 128, 512
// presage: tune VECTOR = 1, 4
// presage: tune AGAIN = 128, 32
// presage: scratch partial = 4 * $planes$ * PARTS
// presage: entry reduce_parts
// presage: grid PARTS, min($planes$, 65535)
// presage: block THREADS
// presage: entry merge_parts
// presage: grid cdiv($planes$, AGAIN)
// presage: block AGAIN
//
// Two launches: PARTS blocks reduce a part of each plane, VECTOR elements at a time where the plane's size allows, and a
// thread merges the results of a plane.

$row_state$

__device__ void take(State &s, float x) { $row_take$ }

extern "C" __global__ void __launch_bounds__(THREADS) reduce_parts($arguments$, float *partial) {
    __shared__ State shared[THREADS / 32];
    const int length = h * w;
    for (int plane = blockIdx.y; plane < n * c; plane += gridDim.y) {
        const float *row = x + (size_t)plane * length;
        State s = $row_start$;
        const int first = blockIdx.x * THREADS + threadIdx.x;
        if (VECTOR == 4 && length % 4 == 0) {
            for (int i = first; i < length / 4; i += PARTS * THREADS) {
                const float4 next = ((const float4 *)row)[i];
                take(s, next.x), take(s, next.y), take(s, next.z), take(s, next.w);
            }
        } else {
            for (int i = first; i < length; i += PARTS * THREADS) take(s, row[i]);
        }
        for (int by = 16; by; by /= 2) take(s, __shfl_xor_sync(0xffffffff, s, by));
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < THREADS / 32; i++) take(s, shared[i]);
            partial[(size_t)plane * PARTS + blockIdx.x] = s;
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(AGAIN) merge_parts($arguments$, float *partial) {
    const int at = blockIdx.x * AGAIN + threadIdx.x, length = h * w;
    if (at >= n * c) return;
    State s = $row_start$;
    for (int i = 0; i < PARTS; i++) take(s, partial[(size_t)at * PARTS + i]);
    $row_write$
}
