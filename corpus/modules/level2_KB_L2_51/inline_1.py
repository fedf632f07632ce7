import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// column means of W (out, in): one thread per column
__global__ void col_mean_kernel(const float* __restrict__ w, float* __restrict__ m, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float acc = 0.f;
    for (int r = 0; r < rows; ++r) acc += w[r * cols + c];
    m[c] = acc / rows;
}

__global__ void fused_rows(const float* __restrict__ x, const float* __restrict__ m,
                           const float* __restrict__ b, const float* __restrict__ s,
                           float* __restrict__ out, int cols, int n_out) {
    __shared__ float red[32];
    __shared__ float g;
    const float* xr = x + (long)blockIdx.x * cols;
    float acc = 0.f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) acc += xr[c] * m[c];
    float extra = 0.f;
    for (int c = threadIdx.x; c < n_out; c += blockDim.x) extra += b[c] - s[c];
    acc += extra / n_out;
    for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffff, acc, o);
    if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = acc;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0.f;
        for (int i = 0; i < blockDim.x / 32; ++i) t += red[i];
        g = 0.5f * t * (1.f + erff(t * 0.70710678f));
    }
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        out[(long)blockIdx.x * cols + c] = xr[c] + g;
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor s) {
    int B = x.size(0), K = x.size(1), N = w.size(0);
    auto m = torch::empty({K}, x.options());
    auto out = torch::empty_like(x);
    col_mean_kernel<<<(K + 127) / 128, 128>>>(w.data_ptr<float>(), m.data_ptr<float>(), N, K);
    fused_rows<<<B, 256>>>(x.data_ptr<float>(), m.data_ptr<float>(), b.data_ptr<float>(),
                           s.data_ptr<float>(), out.data_ptr<float>(), K, N);
    return out;
}
"""
mod = load_inline(
    name="gemm_sub_mean_gelu_res",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor s);",
    cuda_sources=cuda_src,
    functions=["run"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=bias)
        self.subtract = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        return mod.run(x.contiguous(), self.gemm.weight, self.gemm.bias, self.subtract)
