import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

sum_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// grid: (column chunks, row chunks, batch); every block folds 32 rows and adds to the output
__global__ void sum_rows(const float* __restrict__ x, float* __restrict__ out, int R, int C) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int b = blockIdx.z;
    int r0 = blockIdx.y * 32;
    if (c >= C) return;
    float s = 0.f;
    for (int r = r0; r < min(r0 + 32, R); ++r) s += x[((size_t)b * R + r) * C + c];
    out[b * C + c] += s;
}

torch::Tensor sum_dim(torch::Tensor x) {
    int B = x.size(0), R = x.size(1), C = x.size(2);
    auto out = torch::zeros({B, 1, C}, x.options());
    dim3 grid((C + 127) / 128, (R + 31) / 32, B);
    sum_rows<<<grid, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), R, C);
    return out;
}
"""

_sum = load_inline(name="sum_rows_ext", cpp_sources="torch::Tensor sum_dim(torch::Tensor x);",
                   cuda_sources=sum_src, functions=["sum_dim"])


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _sum.sum_dim(x)
