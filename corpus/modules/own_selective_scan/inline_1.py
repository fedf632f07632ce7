import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

template <int N>
__global__ void scan_channels(const float* __restrict__ x, const float* __restrict__ dt, const float* __restrict__ a,
                              const float* __restrict__ b, const float* __restrict__ c, const float* __restrict__ d,
                              float* __restrict__ y, int L, int C) {
    extern __shared__ float bc[];
    int batch = blockIdx.y, ch = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = threadIdx.x; i < L * N; i += blockDim.x) {
        bc[i] = b[(size_t)batch * L * N + i];
        bc[L * N + i] = c[(size_t)batch * L * N + i];
    }
    __syncthreads();
    if (ch >= C) return;
    float h[N], ar[N];
    for (int n = 0; n < N; ++n) { h[n] = 0.f; ar[n] = a[ch * N + n] * 1.4426950408889634f; }
    float skip = d[ch];
    for (int t = 0; t < L; ++t) {
        size_t at = ((size_t)batch * L + t) * C + ch;
        float xv = x[at], dv = dt[at], u = xv * dv, acc = skip * xv;
        #pragma unroll
        for (int n = 0; n < N; ++n) {
            h[n] = exp2f(dv * ar[n]) * h[n] + u * bc[t * N + n];
            acc += h[n] * bc[(L + t) * N + n];
        }
        y[at] = acc;
    }
}

torch::Tensor selective_scan(torch::Tensor x, torch::Tensor dt, torch::Tensor a, torch::Tensor b, torch::Tensor c, torch::Tensor d) {
    int B = x.size(0), L = x.size(1), C = x.size(2), N = a.size(1);
    TORCH_CHECK(N == 16, "sixteen states");
    auto y = torch::empty_like(x);
    scan_channels<16><<<dim3((C + 127) / 128, B), 128, 2 * L * N * sizeof(float)>>>(
        x.data_ptr<float>(), dt.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(),
        d.data_ptr<float>(), y.data_ptr<float>(), L, C);
    return y;
}
"""
sig = "torch::Tensor selective_scan(torch::Tensor x, torch::Tensor dt, torch::Tensor a, torch::Tensor b, torch::Tensor c, torch::Tensor d);"
lib = load_inline(name="own_selective_scan", cpp_sources=sig, cuda_sources=cuda, functions=["selective_scan"])


def custom_kernel(data):
    return lib.selective_scan(*data)
