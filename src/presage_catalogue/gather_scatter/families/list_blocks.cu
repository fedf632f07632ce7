// presage: entry $entry$
// presage: tune ACROSS = 32, 8, 64
// presage: tune PARTS = 8, 2, 4, 32
// presage: tune VECTOR = 4, 1
// presage: tune MEET = 0, 1, 2
// presage: grid lists
// presage: block ACROSS, PARTS
// presage: shared 4 * ACROSS * VECTOR * PARTS
//
// A block adds up one list: ACROSS threads side by side take VECTOR columns each, and PARTS such rows of threads take
// every PARTS-th place of the list. The parts meet in shared memory: by halving (MEET 0), by the first part alone (1) or
// by atomic additions (2).

template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ __forceinline__ void add_up($arguments$, float *meeting) {
    const int r = blockIdx.x, part = threadIdx.y, begin = $list_begin$, end = $list_end$;
    for (int first = 0; first < dim; first += ACROSS * N) {
        const int c = first + threadIdx.x * N;
        float sum[N] = {};
        if (c < dim)
            for (int j = begin + part; j < end; j += PARTS) {
                const Pack<N> pack = *(const Pack<N> *)(x + (size_t)($list_row$) * dim + c);
#pragma unroll
                for (int i = 0; i < N; i++) sum[i] += pack.at[i];
            }
        __syncthreads();
        float *mine = meeting + (MEET == 2 ? 0 : part * ACROSS * N) + threadIdx.x;
        if (MEET != 2 || part == 0)
#pragma unroll
            for (int i = 0; i < N; i++) mine[i * ACROSS] = sum[i];
        __syncthreads();
        if (MEET == 2 && part > 0)
#pragma unroll
            for (int i = 0; i < N; i++) atomicAdd(mine + i * ACROSS, sum[i]);
        if (MEET == 0)
            for (int half = PARTS / 2; half > 0; half /= 2) {
                if (part < half)
#pragma unroll
                    for (int i = 0; i < N; i++) mine[i * ACROSS] += mine[i * ACROSS + half * ACROSS * N];
                __syncthreads();
            }
        if (MEET == 2) __syncthreads();
        if (part > 0 || c >= dim) continue;
        Pack<N> out;
#pragma unroll
        for (int i = 0; i < N; i++) {
            out.at[i] = mine[i * ACROSS];
            if (MEET == 1)
                for (int other = 1; other < PARTS; other++) out.at[i] += mine[i * ACROSS + other * ACROSS * N];
        }
        *(Pack<N> *)(y + (size_t)r * dim + c) = out;
    }
}

extern "C" __global__ void __launch_bounds__(ACROSS *PARTS) $entry$($arguments$) {
    extern __shared__ float meeting[];
    if (dim % VECTOR == 0) add_up<VECTOR>($list_call$, meeting);
    else add_up<1>($list_call$, meeting);
}
