// presage: problem chunk_cumsum_gates
// presage: entry sums
// presage: grid cdiv(batch * cdiv(length, 64) * heads, 128)
// presage: block 128

extern "C" __global__ void sums(const float *g, float *y, int batch, int length, int heads) {
    const int at = blockIdx.x * 128 + threadIdx.x, chunks = (length + 63) / 64;
    if (at >= batch * chunks * heads) return;
    const int h = at % heads, first = at / heads % chunks * 64, b = at / heads / chunks;
    float sum = 0.0f;
    for (int t = first; t < min(first + 64, length); t++) {
        const size_t i = ((size_t)b * length + t) * heads + h;
        sum += g[i];
        y[i] = sum;
    }
}
