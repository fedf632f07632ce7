// presage: entry map_rows
// presage: tune SHIFT = 1, 0
// presage: tune NATIVE = 0, 1
// presage: tune REDUCE = 0, 1
// presage: tune THREADS = 256, 64, 512, 1024
// presage: tune VECTOR = 4, 1
// presage: where SHIFT == 1 or (REDUCE == 0 and VECTOR == 4)
// presage: grid rows
// presage: block THREADS
//
// One block per row, which it reads three times: for the largest element, for the sum of exponentials, and for the
// result. SHIFT 0 leaves out the first. NATIVE takes the hardware's exponential. REDUCE 0 joins the threads by shuffles,
// 1 by halves in shared memory.

#define EXP(v) (NATIVE ? __expf(v) : expf(v))

$prelude$

__device__ float block_reduce(float value, bool largest) {
    __shared__ float part[THREADS];
    const int t = threadIdx.x;
    __syncthreads(); // an earlier call's readers are done
    if (REDUCE) {
        part[t] = value;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (t < half) part[t] = largest ? fmaxf(part[t], part[t + half]) : part[t] + part[t + half];
            __syncthreads();
        }
        return part[0];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (t % 32 == 0) part[t / 32] = value;
    __syncthreads();
    value = part[0];
    for (int w = 1; w < THREADS / 32; w++) value = largest ? fmaxf(value, part[w]) : value + part[w];
    return value;
}

template <int N> __device__ void map_row(const Arguments &a, int r) {
    const Row row = row_of(&a, r);
    const int groups = a.cols / N, seen = MASKED ? (row.extent + N - 1) / N : groups;
    State s = identity();
    $largest$ = SHIFT ? $largest$ : 0.0f;
    if (SHIFT) {
        for (int v = threadIdx.x; v < seen; v += THREADS) {
            const Group<N> g = fetch<N>(a, r, v);
#pragma unroll
            for (int i = 0; i < N; i++) {
                if (MASKED && v * N + i >= row.extent) continue;
                $unpack$
                $prepare$
            }
        }
        $largest$ = block_reduce($largest$, true);
    }
    for (int v = threadIdx.x; v < seen; v += THREADS) {
        const Group<N> g = fetch<N>(a, r, v);
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (MASKED && v * N + i >= row.extent) continue;
            $unpack$
            $add$
        }
    }
    s.sum = block_reduce(s.sum, false);
    s = settled(s);
    Pack<N> *to = (Pack<N> *)(a.$mapped$ + (size_t)r * a.cols);
    for (int v = threadIdx.x; v < groups; v += THREADS) {
        Group<N> group = {};
        if (v < seen) group = fetch<N>(a, r, v);
        to[v] = mapped<N>(group, s, row, v * N);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) map_rows($parameters$) {
    const Arguments a = {$names$};
    if (cols % VECTOR == 0) map_row<VECTOR>(a, blockIdx.x);
    else map_row<1>(a, blockIdx.x);
}
