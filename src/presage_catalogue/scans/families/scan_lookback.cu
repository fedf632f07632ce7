// presage: entry clear
// presage: tune THREADS = 256, 128, 512
// presage: tune ITEMS = 8, 4, 16
// presage: tune WINDOW = 32, 1, 8
// presage: grid cdiv(rows * cdiv(cols, THREADS * ITEMS) + 1, 256)
// presage: block 256
// presage: entry scan
// presage: grid rows * cdiv(cols, THREADS * ITEMS)
// presage: block THREADS
// presage: scratch marks = 4 * rows * cdiv(cols, THREADS * ITEMS) + 4
// presage: scratch totals = $state_bytes$ * rows * cdiv(cols, THREADS * ITEMS)
// presage: scratch running = $state_bytes$ * rows * cdiv(cols, THREADS * ITEMS)
//
// Single-pass scan with decoupled look-back (Merrill and Garland, 2016): a block publishes its chunk's total, then
// joins what the chunks before it have published until it meets one whose running total is known. So the inputs are
// read only once. A warp looks at WINDOW earlier chunks at a time.

$prelude$

#define CHUNK (THREADS * ITEMS)
enum { EMPTY, TOTAL, RUNNING };

__device__ State read_state(const volatile State *from) {
    State s;
    for (int w = 0; w < sizeof(State) / sizeof(float); w++)
        ((float *)&s)[w] = ((const volatile float *)from)[w];
    return s;
}

// The value first, then the mark that says it is there.
__device__ void publish(volatile int *mark, State *to, State s, int what) {
    for (int w = 0; w < sizeof(State) / sizeof(float); w++) ((volatile float *)to)[w] = ((float *)&s)[w];
    __threadfence();
    *mark = what;
}

extern "C" __global__ void clear($parameters$, int *marks, State *totals, State *running) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < rows * ((cols + CHUNK - 1) / CHUNK) + 1) marks[i] = EMPTY;
}

// The total of the chunks before `chunk` in its row; all lanes of one warp call it.
__device__ State look_back(volatile int *marks, State *totals, State *running, int chunk, int lane) {
    State after = identity();
    for (int last = chunk - 1; last >= 0; last -= WINDOW) {
        int mark = RUNNING; // before the row's start nothing is missing
        State s = identity();
        const int mine = last - lane;
        if (lane < WINDOW && mine >= 0) {
            while ((mark = marks[mine]) == EMPTY) {}
            __threadfence();
            s = read_state(mark == RUNNING ? running + mine : totals + mine);
        }
        const unsigned known = __ballot_sync(0xffffffffu, lane < WINDOW && mark == RUNNING);
        const int nearest = known ? __ffs(known) - 1 : WINDOW - 1;
        if (lane > nearest) s = identity();
        // Lane 0 has the latest chunk: totals are joined from higher lanes to lower ones.
        for (int by = 1; by < 32; by *= 2) {
            State other = shuffled(s, (lane + by) % 32);
            if (lane + by >= 32) other = identity();
            s = joined(other, s);
        }
        after = joined(shuffled(s, 0), after);
        if (known) break;
    }
    return after;
}

extern "C" __global__ void __launch_bounds__(THREADS) scan($parameters$, int *marks, State *totals, State *running) {
    __shared__ State offset;
    __shared__ int ticket;
    const Arguments a = {$names$};
    const int chunks = (cols + CHUNK - 1) / CHUNK, lane = threadIdx.x % 32;
    // Chunks are taken in the order in which blocks start, so the ones looked back at are sure to be running.
    if (threadIdx.x == 0) ticket = atomicAdd(marks + rows * chunks, 1);
    __syncthreads();
    const int r = ticket / chunks, chunk = ticket % chunks, mine = chunk * CHUNK + threadIdx.x * ITEMS;
    State item[ITEMS], total;
    load<ITEMS>(a, r, mine, item);
    scan_items<ITEMS>(item);
    const State before = before_thread<THREADS>(item[ITEMS - 1], total);
    if (threadIdx.x < 32) {
        if (lane == 0 && chunk > 0) publish(marks + ticket, totals + ticket, total, TOTAL);
        const int start = ticket - chunk;
        const State earlier = look_back(marks + start, totals + start, running + start, chunk, lane);
        if (lane == 0) {
            publish(marks + ticket, running + ticket, joined(earlier, total), RUNNING);
            offset = earlier;
        }
    }
    __syncthreads();
    store<ITEMS>(a, r, mine, joined(offset, before), item);
}
