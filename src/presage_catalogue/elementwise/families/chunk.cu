// presage: entry $entry$
// presage: tune OWNER = 0, 1, 2
// presage: tune LENGTH = 16, 4, 64, 0
// presage: tune THREADS = 256, 32, 1024
// presage: tune VECTOR = 1, 4
// presage: tune UNROLL = 1, 4
// presage: where LENGTH != 4 or UNROLL == 1
// presage: where VECTOR == 1 or THREADS != 32
// presage: grid cdiv(n, THREADS * LENGTH) if LENGTH else 528
// presage: block THREADS
//
// Consecutive elements belong to one thread (OWNER 0), one warp (1) or one block (2), LENGTH for each of its threads,
// or with LENGTH 0 as many as give every thread of a fixed grid its share. They are taken VECTOR at a time, in a loop
// that is unrolled UNROLL times.
$element$

template <int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
typedef Pack<VECTOR> Vector;

$entry_of_map$
    const int lanes = OWNER == 0 ? 1 : OWNER == 1 ? 32 : THREADS;
    const int thread = blockIdx.x * THREADS + threadIdx.x;
#if LENGTH
    const int length = LENGTH;
#else
    const int share = (n + gridDim.x * THREADS - 1) / (gridDim.x * THREADS);
    const int length = (share + VECTOR - 1) / VECTOR * VECTOR;
#endif
    const int first = thread / lanes * lanes * length + thread % lanes * VECTOR;
#pragma unroll UNROLL
    for (int j = 0; j < length / VECTOR; j++) {
        const int at = first + j * lanes * VECTOR;
        if (at + VECTOR <= n) {
            Vector kept[$inputs$], made[$outputs$];
#pragma unroll
            for (int k = 0; k < $inputs$; k++) kept[k] = *(const Vector *)(from[k] + at);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                $apply_to_vector$
            }
#pragma unroll
            for (int k = 0; k < $outputs$; k++) *(Vector *)(to[k] + at) = made[k];
        } else {
            for (int i = at; i < n; i++) {
                float in[$inputs$], out[$outputs$];
#pragma unroll
                for (int k = 0; k < $inputs$; k++) in[k] = from[k][i];
                apply(in, out);
#pragma unroll
                for (int k = 0; k < $outputs$; k++) to[k][i] = out[k];
            }
        }
    }
}
