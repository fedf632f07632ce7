// presage: entry $entry$
// presage: tune THREADS = 256, 128, 512, 1024
// presage: tune ACROSS = 32, 8, 2, 64, 128
// presage: tune VECTOR = 4, 1
// presage: tune UNROLL = 4, 1
// presage: grid cdiv(cols, ACROSS * VECTOR)
// presage: block THREADS
//
// A block takes ACROSS * VECTOR columns, its threads in THREADS / ACROSS rows that take turns downwards, and merges
// their states in shared memory.

$fold$

$down$

extern "C" __global__ void __launch_bounds__(THREADS)
$entry$($column_arguments$) {
    const float *const from[] = {$in_pointers$};
    const int first = (blockIdx.x * ACROSS + threadIdx.x % ACROSS) * VECTOR;
    State s[VECTOR];
    down(s, from, first, cols, threadIdx.x / ACROSS, rows, THREADS / ACROSS);
    up(s);
    if (threadIdx.x >= ACROSS) return;
    for (int i = 0; i < VECTOR; i++)
        if (first + i < cols) y[first + i] = finish(&s[i], rows);
}
