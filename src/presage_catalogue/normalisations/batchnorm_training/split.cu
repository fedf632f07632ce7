// presage: entry parts
// presage: tune PARTS = 32, 8, 128
// presage: tune THREADS = 256, 512
// presage: tune ACROSS = 32, 8, 128
// presage: tune VECTOR = 4, 1
// presage: tune METHOD = 2, 0, 1
// presage: tune ORIGIN = 1, 0
// presage: tune ROWS = 8, 1
// presage: where ORIGIN == 1 or (METHOD == 0 and THREADS == 256 and ROWS == 8)
// presage: where METHOD == 2 or VECTOR == 4
// presage: grid cdiv(cols, ACROSS * VECTOR), PARTS
// presage: block THREADS
// presage: entry combine
// presage: grid cdiv(cols, 64)
// presage: block 64
// presage: entry apply
// presage: grid cdiv(cols, 128 * VECTOR), cdiv(rows, ROWS)
// presage: block 128
// presage: scratch partial = 24 * cols * PARTS
//
// PARTS blocks share the rows of a tile of columns and leave their statistics in memory, a second launch merges them,
// and a third, ROWS rows a thread, normalises. METHOD 0 adds up in float, 1 in double, both relative to the first row
// where ORIGIN; 2 is Welford's.

$column_moments$

extern "C" __global__ void __launch_bounds__(THREADS)
parts(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
      float *__restrict__ y, float *__restrict__ mean, float *__restrict__ variance, int rows, int cols,
      State *__restrict__ partial) {
    __shared__ State part[THREADS];
    const int deep = THREADS / ACROSS, level = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
    const int first = (blockIdx.x * ACROSS + across) * VECTOR;
    const bool whole = cols % VECTOR == 0, inside = first < cols;
    Pack origin = {};
    if (inside && ORIGIN) origin = load(x + first, whole, cols - first);
    State s[VECTOR] = {};
    if (inside)
#pragma unroll 4
        for (int r = blockIdx.y * deep + level; r < rows; r += PARTS * deep) {
            const Pack pack = load(x + (size_t)r * cols + first, whole, cols - first);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) include(s[i], pack.at[i], origin.at[i]);
        }
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        part[threadIdx.x] = s[i];
        __syncthreads();
        for (int half = deep / 2; half > 0; half /= 2) {
            if (level < half) merge(part[threadIdx.x], part[threadIdx.x + half * ACROSS]);
            __syncthreads();
        }
        if (level == 0 && first + i < cols) partial[(size_t)blockIdx.y * cols + first + i] = part[across];
        __syncthreads();
    }
}

extern "C" __global__ void combine(const float *__restrict__ x, const float *__restrict__ weight,
                                   const float *__restrict__ bias, float *__restrict__ y, float *__restrict__ mean,
                                   float *__restrict__ variance, int rows, int cols, State *__restrict__ partial) {
    const int c = blockIdx.x * 64 + threadIdx.x;
    if (c >= cols) return;
    State s = {};
    for (int p = 0; p < PARTS; p++) merge(s, partial[(size_t)p * cols + c]);
    const Sum middle = METHOD == 2 ? s.mean : s.mean / rows;
    mean[c] = METHOD != 2 && ORIGIN ? (float)(middle + x[c]) : (float)middle;
    variance[c] = METHOD == 2 ? s.squares / rows : fmaxf(s.squares / rows - middle * middle, 0.0f);
}

extern "C" __global__ void apply(const float *__restrict__ x, const float *__restrict__ weight,
                                 const float *__restrict__ bias, float *__restrict__ y, const float *__restrict__ mean,
                                 const float *__restrict__ variance, int rows, int cols,
                                 const State *__restrict__ partial) {
    const int first = (blockIdx.x * 128 + threadIdx.x) * VECTOR;
    if (first >= cols) return;
    const bool whole = cols % VECTOR == 0;
    float scale[VECTOR], shift[VECTOR], centre[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        if (first + i < cols) {
            scale[i] = rsqrtf(variance[first + i] + 1e-5f) * weight[first + i];
            shift[i] = bias[first + i];
            centre[i] = mean[first + i];
        }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int r = blockIdx.y * ROWS + k;
        if (r >= rows) return;
        Pack pack = load(x + (size_t)r * cols + first, whole, cols - first);
        float *to = y + (size_t)r * cols + first;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) pack.at[i] = (pack.at[i] - centre[i]) * scale[i] + shift[i];
        if (whole) *(Pack *)to = pack;
        else
            for (int i = 0; i < VECTOR; i++)
                if (first + i < cols) to[i] = pack.at[i];
    }
}
