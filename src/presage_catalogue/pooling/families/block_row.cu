// presage: entry $entry$
// presage: tune THREADS = 256, 32, 64, 128, 512, 1024
// presage: tune VECTOR = 1, 4
// presage: tune UNROLL = 1, 4
// presage: tune TREE = 0, 1
// presage: where THREADS > 32 or TREE == 0
// presage: grid n * c
// presage: block THREADS
//
// A block reduces one plane. Threads take elements THREADS apart, one or four (VECTOR) at a time, UNROLL loads in
// flight, and then merge theirs: warps by shuffles and their results in shared memory (TREE 0), or all in a tree there.

$row_state$

__device__ void take(State &s, float x) { $row_take$ }

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    __shared__ State shared[THREADS];
    const int length = h * w;
    const float *row = x + (size_t)blockIdx.x * length;
    State s = $row_start$;
    if (VECTOR == 4 && length % 4 == 0) {
        int i = threadIdx.x;
        for (; i + (UNROLL - 1) * THREADS < length / 4; i += UNROLL * THREADS) {
            float4 next[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) next[k] = ((const float4 *)row)[i + k * THREADS];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) take(s, next[k].x), take(s, next[k].y), take(s, next[k].z), take(s, next[k].w);
        }
        for (; i < length / 4; i += THREADS) {
            const float4 next = ((const float4 *)row)[i];
            take(s, next.x), take(s, next.y), take(s, next.z), take(s, next.w);
        }
    } else {
        int i = threadIdx.x;
        for (; i + (UNROLL - 1) * THREADS < length; i += UNROLL * THREADS) {
            float next[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) next[k] = row[i + k * THREADS];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) take(s, next[k]);
        }
        for (; i < length; i += THREADS) take(s, row[i]);
    }
    if (TREE) {
        shared[threadIdx.x] = s;
        for (int by = THREADS / 2; by; by /= 2) {
            __syncthreads();
            if (threadIdx.x < by) take(shared[threadIdx.x], shared[threadIdx.x + by]);
        }
        s = shared[0];
    } else {
        for (int by = 16; by; by /= 2) take(s, __shfl_xor_sync(0xffffffff, s, by));
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x >= 32) return;
        s = $row_start$;
        if (threadIdx.x < THREADS / 32) s = shared[threadIdx.x];
        for (int by = 16; by; by /= 2) take(s, __shfl_xor_sync(0xffffffff, s, by));
    }
    if (threadIdx.x == 0) {
        const size_t at = blockIdx.x;
        $row_write$
    }
}
