// presage: entry clear
// presage: tune PARTS = 16, 4, 64, 512
// presage: tune THREADS = 256, 128, 512
// presage: tune ACROSS = 32, 8, 128
// presage: tune VECTOR = 4, 1
// presage: tune MEET = 1, 0
// presage: where MEET == 1 or ACROSS == 32
// presage: grid cdiv(cols, 256)
// presage: block 256
// presage: entry parts
// presage: grid cdiv(cols, ACROSS * VECTOR), PARTS
// presage: block THREADS
// presage: entry answers
// presage: grid cdiv(cols, 256)
// presage: block 256
// presage: scratch total = $state_bytes$ * cols
//
// PARTS blocks share the rows of a tile of columns and add to the columns' states in memory atomically, after its
// threads have met in shared memory (MEET 1) or each for itself (0).
#define UNROLL 4

$fold$

$down$

extern "C" __global__ void clear($column_arguments$, State *__restrict__ total) {
    const int col = blockIdx.x * 256 + threadIdx.x;
    if (col < cols) total[col] = empty();
}

extern "C" __global__ void __launch_bounds__(THREADS)
parts($column_arguments$, State *__restrict__ total) {
    const float *const from[] = {$in_pointers$};
    const int first = (blockIdx.x * ACROSS + threadIdx.x % ACROSS) * VECTOR, deep = THREADS / ACROSS;
    State states[VECTOR];
    down(states, from, first, cols, blockIdx.y * deep + threadIdx.x / ACROSS, rows, PARTS * deep);
    if (MEET) {
        up(states);
        if (threadIdx.x >= ACROSS) return;
    }
    for (int i = 0; i < VECTOR; i++)
        if (first + i < cols) {
            State *to = &total[first + i];
            const State s = states[i];
            $atomic$
        }
}

extern "C" __global__ void answers($column_arguments$, State *__restrict__ total) {
    const int col = blockIdx.x * 256 + threadIdx.x;
    if (col < cols) y[col] = finish(&total[col], rows);
}
