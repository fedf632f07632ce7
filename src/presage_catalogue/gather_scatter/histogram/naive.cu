// presage: problem histogram
// presage: entry clear
// presage: grid cdiv(bins, 256)
// presage: block 256
// presage: entry count
// presage: grid cdiv(n, 256)
// presage: block 256

extern "C" __global__ void clear(const int *x, unsigned long long *counts, int n, int bins) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < bins) counts[i] = 0;
}

extern "C" __global__ void count(const int *x, unsigned long long *counts, int n, int bins) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(counts + x[i], 1ull);
}
