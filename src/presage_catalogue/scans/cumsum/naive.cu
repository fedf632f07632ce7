// presage: problem cumsum
// presage: entry cumsum
// presage: grid rows
// presage: block 256
//
// One block per row, 256 elements at a time; each step of a scan adds the element twice as far away as the step before.

extern "C" __global__ void cumsum(const float *x, float *y, int rows, int cols) {
    __shared__ float sums[256];
    const float *in = x + (size_t)blockIdx.x * cols;
    float *out = y + (size_t)blockIdx.x * cols;
    const int t = threadIdx.x;
    float before = 0.0f;
    for (int start = 0; start < cols; start += 256) {
        const int c = start + t;
        sums[t] = c < cols ? in[c] : 0.0f;
        __syncthreads();
        for (int distance = 1; distance < 256; distance *= 2) {
            const float other = t >= distance ? sums[t - distance] : 0.0f;
            __syncthreads();
            sums[t] += other;
            __syncthreads();
        }
        if (c < cols) out[c] = before + sums[t];
        before += sums[255];
        __syncthreads();
    }
}
