// presage: problem cumsum
// presage: entry clear
// presage: tune THREADS = 256, 128, 512
// presage: tune ITEMS = 8, 4, 16
// presage: tune WINDOW = 32, 1
// presage: grid cdiv(rows * cdiv(cols, THREADS * ITEMS) + 1, 256)
// presage: block 256
// presage: entry scan
// presage: grid rows * cdiv(cols, THREADS * ITEMS)
// presage: block THREADS
// presage: scratch states = 8 * rows * cdiv(cols, THREADS * ITEMS) + 8
//
// Single-pass scan with decoupled look-back (Merrill and Garland, 2016): a block publishes its chunk's sum, then adds
// up what the chunks before it have published until it meets one whose running sum is known. So x is read only once.
// WINDOW 32 lets a warp look at 32 earlier chunks at a time, 1 goes back one by one.

#define CHUNK (THREADS * ITEMS)
enum { EMPTY, SUM, RUNNING };

// State and value travel in one 64-bit word, so that nobody sees one without the other.
__device__ void publish(volatile unsigned long long *to, int state, float value) {
    *to = ((unsigned long long)state << 32) | __float_as_uint(value);
}

extern "C" __global__ void clear(const float *x, float *y, int rows, int cols, unsigned long long *states) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < rows * ((cols + CHUNK - 1) / CHUNK) + 1) states[i] = EMPTY;
}

// The sum of the chunks before `chunk` in its row; all lanes of one warp call it.
__device__ float look_back(volatile unsigned long long *row, int chunk, int lane) {
    float total = 0.0f;
    for (int last = chunk - 1; last >= 0; last -= WINDOW) {
        unsigned long long word = (unsigned long long)RUNNING << 32; // before the row's start: a running sum of 0
        const int mine = last - lane;
        if (lane < WINDOW && mine >= 0)
            while ((word = row[mine]) >> 32 == EMPTY) {}
        const bool known = lane < WINDOW && word >> 32 == RUNNING;
        const unsigned running = __ballot_sync(0xffffffffu, known);
        const int nearest = running ? __ffs(running) - 1 : WINDOW;
        float value = lane < WINDOW && lane <= nearest ? __uint_as_float((unsigned)word) : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
        total += value;
        if (running) break;
    }
    return total;
}

extern "C" __global__ void __launch_bounds__(THREADS)
scan(const float *__restrict__ x, float *__restrict__ y, int rows, int cols, unsigned long long *states) {
    __shared__ float of_warp[THREADS / 32], offset;
    __shared__ int ticket;
    const int chunks = (cols + CHUNK - 1) / CHUNK, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // Chunks are taken in the order in which blocks start, so the ones looked back at are sure to be running.
    if (threadIdx.x == 0) ticket = atomicAdd((int *)(states + rows * chunks), 1);
    __syncthreads();
    const int chunk = ticket % chunks;
    const size_t row = (size_t)(ticket / chunks) * cols;
    unsigned long long *state = states + ticket;
    const int first = chunk * CHUNK + threadIdx.x * ITEMS;

    alignas(16) float item[ITEMS];
    if (cols % 4 == 0) {
#pragma unroll
        for (int i = 0; i < ITEMS; i += 4)
            *(float4 *)(item + i) = first + i < cols ? *(const float4 *)(x + row + first + i) : make_float4(0, 0, 0, 0);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) item[i] = first + i < cols ? x[row + first + i] : 0.0f;
    }
#pragma unroll
    for (int i = 1; i < ITEMS; i++) item[i] += item[i - 1];

    float running = item[ITEMS - 1];
    for (int distance = 1; distance < 32; distance *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, running, distance);
        if (lane >= distance) running += other;
    }
    if (lane == 31) of_warp[warp] = running;
    const float exclusive = __shfl_up_sync(0xffffffffu, running, 1);
    __syncthreads();
    float before = lane > 0 ? exclusive : 0.0f, sum = 0.0f;
    for (int w = 0; w < THREADS / 32; w++) {
        if (w < warp) before += of_warp[w];
        sum += of_warp[w];
    }
    if (warp == 0) {
        if (lane == 0 && chunk > 0) publish(state, SUM, sum);
        const float earlier = look_back(states + ticket - chunk, chunk, lane);
        if (lane == 0) {
            publish(state, RUNNING, earlier + sum);
            offset = earlier;
        }
    }
    __syncthreads();
    before += offset;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) item[i] += before;
    if (cols % 4 == 0) {
#pragma unroll
        for (int i = 0; i < ITEMS; i += 4)
            if (first + i < cols) *(float4 *)(y + row + first + i) = *(float4 *)(item + i);
    } else {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            if (first + i < cols) y[row + first + i] = item[i];
    }
}
