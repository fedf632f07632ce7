// presage: entry parts
// presage: tune PARTS = 16, 4, 64, 256
// presage: tune THREADS = 256, 128, 512
// presage: tune ACROSS = 32, 8, 128
// presage: tune VECTOR = 4, 1
// presage: tune SHARE = 0, 1
// presage: tune COMBINE = 0, 1
// presage: where SHARE == 0 or (THREADS == 256 and COMBINE == 0 and ACROSS == 32)
// presage: where COMBINE == 0 or ACROSS == 32
// presage: grid cdiv(cols, ACROSS * VECTOR), PARTS
// presage: block THREADS
// presage: entry combine
// presage: grid cols if COMBINE else cdiv(cols, 128)
// presage: block 32 if COMBINE else 128
// presage: scratch partial = $state_bytes$ * cols * PARTS
//
// PARTS blocks share the rows of a tile of columns and leave their states in memory; a second launch merges those, by a
// thread (COMBINE 0) or a warp (1) per column. A block's share of the rows is rounded up (SHARE 0) or down (1).
#define UNROLL 4

$fold$

$down$

extern "C" __global__ void __launch_bounds__(THREADS)
parts($column_arguments$, State *__restrict__ partial) {
    const float *const from[] = {$in_pointers$};
    const int first = (blockIdx.x * ACROSS + threadIdx.x % ACROSS) * VECTOR;
    const int share = SHARE == 0 ? (rows + PARTS - 1) / PARTS : rows / PARTS, begin = blockIdx.y * share;
    State s[VECTOR];
    down(s, from, first, cols, begin + threadIdx.x / ACROSS, min(rows, begin + share), THREADS / ACROSS);
    up(s);
    if (threadIdx.x >= ACROSS) return;
    for (int i = 0; i < VECTOR; i++)
        if (first + i < cols) partial[(size_t)blockIdx.y * cols + first + i] = s[i];
}

extern "C" __global__ void combine($column_arguments$, State *__restrict__ partial) {
    const int col = COMBINE ? blockIdx.x : blockIdx.x * 128 + threadIdx.x;
    if (col >= cols) return;
    State s = empty();
    for (int part = COMBINE ? threadIdx.x : 0; part < PARTS; part += COMBINE ? 32 : 1)
        merge(&s, &partial[(size_t)part * cols + col]);
    if (COMBINE)
        for (int offset = 16; offset > 0; offset /= 2) {
            const State o = from_lane(&s, offset);
            merge(&s, &o);
        }
    if (COMBINE == 0 || threadIdx.x == 0) y[col] = finish(&s, rows);
}
