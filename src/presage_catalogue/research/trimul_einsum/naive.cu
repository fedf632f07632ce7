// presage: problem trimul_einsum
// presage: entry contract
// presage: grid cdiv(n * n * hidden, 256)
// presage: block 256

extern "C" __global__ void contract(const float *left, const float *right, float *y, int n, int hidden) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= n * n * hidden) return;
    const int h = at % hidden, j = at / hidden % n, i = at / hidden / n;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += left[(i * n + k) * hidden + h] * right[(j * n + k) * hidden + h];
    y[at] = sum;
}
