// presage: entry clear
// presage: tune THREADS = 256, 64, 1024
// presage: tune ITEMS = 4, 1, 16
// presage: tune WIDE = $scatter_wides$
// presage: tune SPREAD = 1, 0
// presage: tune TAIL = 1, 0
// presage: where ITEMS > 1 or SPREAD == 1
// presage: where TAIL == 1 or (ITEMS == 4 and SPREAD == 1)
// presage: grid min(cdiv(targets * $scatter_width$, 256), 1056)
// presage: block 256
// presage: entry $scatter_entry$
// presage: grid cdiv(n * $scatter_width$, THREADS * ITEMS)
// presage: block THREADS
//
// The result is cleared, then a thread adds ITEMS elements of x to it: neighbours, or a block's width apart with SPREAD.
// WIDE of them go in one atomic addition where they lie side by side in y. TAIL is the last, partial share.

extern "C" __global__ void clear($scatter_arguments$) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < targets * $scatter_width$; i += gridDim.x * 256)
        y[i] = 0.0f;
}

template <int N> __device__ __forceinline__ void add(float *to, const float *from) {
    if (N == 4) atomicAdd((float4 *)to, *(const float4 *)from);
    else if (N == 2) atomicAdd((float2 *)to, *(const float2 *)from);
    else atomicAdd(to, *from);
}

template <int N> __device__ __forceinline__ void all($scatter_arguments$) {
    const int width = $scatter_width$, units = n * width / N;
    const int share = THREADS * ITEMS, shares = (units + (TAIL ? share - 1 : 0)) / share;
    for (int block = blockIdx.x; block < shares; block += gridDim.x)
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int u = block * share + (SPREAD ? k * THREADS + (int)threadIdx.x : (int)threadIdx.x * ITEMS + k);
            if (u >= units) continue;
            const int i = u * N;
            add<N>(y + (size_t)indices[i / width] * width + i % width, x + i);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) $scatter_entry$($scatter_arguments$) {
    if ($scatter_width$ % WIDE == 0) all<WIDE>(x, indices, y, $scatter_sizes$);
    else all<1>(x, indices, y, $scatter_sizes$);
}
