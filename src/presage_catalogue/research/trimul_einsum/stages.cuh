// presage: entry contract
// presage: grid cdiv(n, BM) * cdiv(n, BN), hidden
// presage: block (BM // TM) * (BN // TN) * LANES

extern "C" __global__ void __launch_bounds__(THREADS)
contract(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ y, int n, int hidden) {
    const int h = blockIdx.y;
    product<1>(
        blockIdx.x, n, n, n, [&](int i, int k) { return left[(i * n + k) * hidden + h]; },
        [&](int k, int j, int) { return right[(j * n + k) * hidden + h]; },
        [&](int i, int j, const float (&s)[1]) { y[(i * n + j) * hidden + h] = s[0]; });
}
