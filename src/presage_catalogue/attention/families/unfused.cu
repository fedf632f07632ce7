// presage: entry dots
// presage: tune TILE = 16, 32, 8
// presage: tune ROWS = 1, 2, 4
// presage: tune THREADS = 128, 32, 256, 512
// presage: tune MAXIMUM = 1, 0
// presage: tune SKIP = 1, 0
// presage: where MAXIMUM == 1 or (SKIP == 1 and THREADS >= 256)
// presage: where ROWS < 4 or TILE > 8
// presage: grid cdiv(keys, TILE), cdiv($queries$, TILE * ROWS), heads
// presage: block TILE, TILE
// presage: entry weigh
// presage: grid $queries$, heads
// presage: block THREADS
// presage: entry average
// presage: grid cdiv(dim, TILE), cdiv($queries$, TILE * ROWS), heads
// presage: block TILE, TILE
// presage: scratch scores = 4 * heads * $queries$ * keys
//
// Three launches with all scores in memory between them: products from tiles in shared memory, ROWS scores per thread;
// the softmax of each row by THREADS threads, with MAXIMUM below the largest; and the products with the values. With
// SKIP tiles and keys that are not seen are left out, otherwise they get a weight of zero.
$scores$

extern "C" __global__ void __launch_bounds__(TILE * TILE) dots($arguments$, float *__restrict__ scores) {
    __shared__ float left[TILE * ROWS][TILE + 1], right[TILE][TILE + 1];
    const int rows = $queries$, head = blockIdx.z, x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE * ROWS, col = blockIdx.x * TILE, j = col + x;
    const size_t kept = (size_t)($head$) * keys, mine = (size_t)head * rows;
    if (SKIP && (col >= end_key(min(row + TILE * ROWS, rows) - 1, rows, keys$range_arguments$) ||
                 col + TILE <= first_key(row, rows, keys$range_arguments$)))
        return;
    float dot[ROWS] = {};
    for (int start = 0; start < dim; start += TILE) {
        const int c = start + x;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = row + y + r * TILE;
            left[y + r * TILE][x] = i < rows && c < dim ? number(q[(mine + i) * dim + c]) : 0.0f;
        }
        right[y][x] = col + y < keys && c < dim ? number(k[(kept + col + y) * dim + c]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE; p++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) dot[r] += left[y + r * TILE][p] * right[x][p];
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int i = row + y + r * TILE;
        if (i >= rows || j >= keys) continue;
        const bool seen = j >= first_key(i, rows, keys$range_arguments$) && j < end_key(i, rows, keys$range_arguments$);
        const float score = dot[r] / sqrtf((float)dim) + bias(head, i, j, rows, keys$bias_arguments$);
        scores[(mine + i) * keys + j] = seen ? score : -INFINITY;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) weigh($arguments$, float *__restrict__ scores) {
    __shared__ float shared[THREADS / 32];
    const int rows = $queries$, i = blockIdx.x, head = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = SKIP ? first_key(i, rows, keys$range_arguments$) : 0;
    const int end = SKIP ? min(end_key(i, rows, keys$range_arguments$), keys) : keys;
    float *mine = scores + ((size_t)head * rows + i) * keys;
    float largest = MAXIMUM ? -INFINITY : 0.0f, sum = 0.0f;
    if (MAXIMUM) {
        for (int j = first + threadIdx.x; j < end; j += THREADS) largest = fmaxf(largest, mine[j]);
#pragma unroll
        for (int by = 16; by > 0; by /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, by));
        if (lane == 0) shared[warp] = largest;
        __syncthreads();
        for (int w = 0; w < THREADS / 32; w++) largest = fmaxf(largest, shared[w]);
        __syncthreads();
    }
    for (int j = first + threadIdx.x; j < end; j += THREADS) {
        const float weight = expf(mine[j] - largest);
        mine[j] = weight;
        sum += weight;
    }
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    if (lane == 0) shared[warp] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < THREADS / 32; w++) sum += shared[w];
    for (int j = first + threadIdx.x; j < end; j += THREADS) mine[j] /= sum;
}

extern "C" __global__ void __launch_bounds__(TILE * TILE) average($arguments$, float *__restrict__ scores) {
    __shared__ float left[TILE * ROWS][TILE + 1], right[TILE][TILE + 1];
    const int rows = $queries$, head = blockIdx.z, x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE * ROWS, c = blockIdx.x * TILE + x;
    const size_t kept = (size_t)($head$) * keys, mine = (size_t)head * rows;
    const int begin = SKIP ? first_key(row, rows, keys$range_arguments$) : 0;
    const int stop = SKIP ? min(end_key(min(row + TILE * ROWS, rows) - 1, rows, keys$range_arguments$), keys) : keys;
    float total[ROWS] = {};
    for (int start = begin; start < stop; start += TILE) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int i = row + y + r * TILE, j = start + x;
            const bool seen = i < rows && j < keys && j >= first_key(i, rows, keys$range_arguments$) &&
                              j < end_key(i, rows, keys$range_arguments$);
            left[y + r * TILE][x] = seen ? scores[(mine + i) * keys + j] : 0.0f;
        }
        right[y][x] = start + y < keys && c < dim ? number(v[(kept + start + y) * dim + c]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE; p++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) total[r] += left[y + r * TILE][p] * right[p][x];
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int i = row + y + r * TILE;
        if (i < rows && c < dim) put(out + (mine + i) * dim + c, total[r]);
    }
}
