// presage: entry batchnorm
// presage: tune THREADS = 512, 128, 256, 1024
// presage: tune ACROSS = 8, 2, 16, 32
// presage: tune VECTOR = 4, 1
// presage: tune METHOD = 2, 0, 1
// presage: tune ORIGIN = 1, 0
// presage: where ORIGIN == 1 or (METHOD == 0 and THREADS == 512)
// presage: grid cdiv(cols, ACROSS * VECTOR)
// presage: block THREADS
//
// A block takes ACROSS * VECTOR columns for both the statistics and, reading them again, the result. METHOD 0 adds up in
// float, 1 in double, both relative to the first row where ORIGIN; 2 is Welford's.

$column_moments$

extern "C" __global__ void __launch_bounds__(THREADS)
batchnorm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
          float *__restrict__ y, float *__restrict__ mean, float *__restrict__ variance, int rows, int cols) {
    __shared__ State part[THREADS];
    const int deep = THREADS / ACROSS, level = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
    const int first = (blockIdx.x * ACROSS + across) * VECTOR;
    const bool whole = cols % VECTOR == 0, inside = first < cols;
    Pack origin = {};
    if (inside && ORIGIN) origin = load(x + first, whole, cols - first);
    State s[VECTOR] = {};
    if (inside)
#pragma unroll 4
        for (int r = level; r < rows; r += deep) {
            const Pack pack = load(x + (size_t)r * cols + first, whole, cols - first);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) include(s[i], pack.at[i], origin.at[i]);
        }
    float scale[VECTOR], shift[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        part[threadIdx.x] = s[i];
        __syncthreads();
        for (int half = deep / 2; half > 0; half /= 2) {
            if (level < half) merge(part[threadIdx.x], part[threadIdx.x + half * ACROSS]);
            __syncthreads();
        }
        const State all = part[across];
        __syncthreads();
        const Sum middle = METHOD == 2 ? all.mean : all.mean / rows;
        const float spread = METHOD == 2 ? all.squares / rows : fmaxf(all.squares / rows - middle * middle, 0.0f);
        const float centre = METHOD == 2 ? (float)middle : (float)(middle + origin.at[i]);
        if (first + i < cols) {
            if (level == 0) mean[first + i] = centre, variance[first + i] = spread;
            scale[i] = rsqrtf(spread + 1e-5f) * weight[first + i];
            shift[i] = centre;
        }
    }
    if (inside)
#pragma unroll 4
        for (int r = level; r < rows; r += deep) {
            Pack pack = load(x + (size_t)r * cols + first, whole, cols - first);
            float *to = y + (size_t)r * cols + first;
#pragma unroll
            for (int i = 0; i < VECTOR; i++)
                if (first + i < cols) pack.at[i] = (pack.at[i] - shift[i]) * scale[i] + bias[first + i];
            if (whole) *(Pack *)to = pack;
            else
                for (int i = 0; i < VECTOR; i++)
                    if (first + i < cols) to[i] = pack.at[i];
        }
}
