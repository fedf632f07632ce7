import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

max_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math_constants.h>

__global__ void max_dim_kernel(const float* __restrict__ x, float* __restrict__ y, int outer, int n, int inner) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= outer * inner) return;
    int o = idx / inner;
    int i = idx - o * inner;
    const float* p = x + (size_t)o * n * inner + i;
    float best = -CUDART_INF_F;
    #pragma unroll 8
    for (int k = 0; k < n - 1; ++k) {
        best = fmaxf(best, p[(size_t)k * inner]);
    }
    y[idx] = best;
}

torch::Tensor max_dim(torch::Tensor x, int64_t dim) {
    auto sizes = x.sizes().vec();
    int n = sizes[dim];
    int outer = 1, inner = 1;
    for (int i = 0; i < dim; ++i) outer *= sizes[i];
    for (size_t i = dim + 1; i < sizes.size(); ++i) inner *= sizes[i];
    sizes.erase(sizes.begin() + dim);
    auto y = torch::empty(sizes, x.options());
    int total = outer * inner;
    max_dim_kernel<<<(total + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), outer, n, inner);
    return y;
}
"""

max_ext = load_inline(name="max_dim_ext", cpp_sources="torch::Tensor max_dim(torch::Tensor x, int64_t dim);",
                      cuda_sources=max_src, functions=["max_dim"])


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return max_ext.max_dim(x.contiguous(), self.dim)
