import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

triu_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void zero_lower(float* c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < n && col < row) c[(size_t)row * n + col] = 0.f;
}

void triu_(torch::Tensor c) {
    int n = c.size(0);
    dim3 block(32, 8);
    dim3 grid((n + 31) / 32, (n + 7) / 8);
    zero_lower<<<grid, block>>>(c.data_ptr<float>(), n);
}
"""

triu_ext = load_inline(name="triu_inplace_ext", cpp_sources="void triu_(torch::Tensor c);",
                       cuda_sources=triu_src, functions=["triu_"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        C = torch.matmul(A, B)
        triu_ext.triu_(C)
        return C
