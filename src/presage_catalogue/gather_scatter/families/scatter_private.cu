// presage: entry clear
// presage: tune THREADS = 512, 256, 1024
// presage: tune BLOCKS = 264, 132, 1056
// presage: tune COPIES = 1, 4
// presage: tune VECTOR = 4, 1
// presage: tune AGGREGATE = 0, 1
// presage: tune LIMIT = 12288, 49152
// presage: grid cdiv(targets, 256)
// presage: block 256
// presage: entry $scatter_entry$
// presage: grid BLOCKS
// presage: block THREADS
// presage: shared 4 * targets * (COPIES if targets * COPIES <= LIMIT else 1) if targets <= LIMIT else 0
//
// Every block adds into up to COPIES sums of its own in shared memory, as long as they are at most LIMIT, and adds those
// to the result at the end; more go to the result at once. AGGREGATE adds up what lanes of a warp have for one target.
$single$

extern "C" __global__ void clear($scatter_arguments$) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < targets) y[i] = 0.0f;
}

__device__ void add(float *sums, int copies, int target, float value) {
    if (!AGGREGATE) {
        if (target >= 0) atomicAdd(sums + (size_t)target * copies, value);
        return;
    }
    // A round for each of the warp's targets: its lanes add up, the first of them writes.
    const int lane = threadIdx.x % 32;
    unsigned left = __ballot_sync(0xffffffffu, target >= 0);
    while (left) {
        const int chosen = __shfl_sync(0xffffffffu, target, __ffs(left) - 1);
        float sum = target == chosen ? value : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        if (lane == __ffs(left) - 1) atomicAdd(sums + (size_t)chosen * copies, sum);
        left &= ~__ballot_sync(0xffffffffu, target == chosen);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) $scatter_entry$($scatter_arguments$) {
    extern __shared__ float near[];
    const int copies = targets > LIMIT ? 0 : targets * COPIES <= LIMIT ? COPIES : 1;
    for (int i = threadIdx.x; i < targets * copies; i += THREADS) near[i] = 0.0f;
    __syncthreads();
    float *sums = copies ? near + threadIdx.x / 32 % copies : y;
    const int stride = gridDim.x * THREADS * VECTOR;
    // Every thread makes as many turns as the first, so that whole warps add together.
    for (int turn = blockIdx.x * THREADS * VECTOR; turn < n; turn += stride) {
        const int first = turn + threadIdx.x * VECTOR;
        int target[VECTOR];
        float value[VECTOR];
        if (VECTOR == 4 && first + 3 < n) {
            *(int4 *)target = *(const int4 *)(indices + first);
            *(float4 *)value = *(const float4 *)(x + first);
        } else {
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                target[i] = first + i < n ? indices[first + i] : -1;
                value[i] = first + i < n ? x[first + i] : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < VECTOR; i++) add(sums, copies ? copies : 1, target[i], value[i]);
    }
    __syncthreads();
    for (int target = threadIdx.x; copies && target < targets; target += THREADS) {
        float sum = 0.0f;
        for (int copy = 0; copy < copies; copy++) sum += near[target * copies + copy];
        if (sum != 0.0f) atomicAdd(y + target, sum);
    }
}
