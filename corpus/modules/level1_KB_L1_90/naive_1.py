import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
__global__ void cumprod_serial(const float* x, float* y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float p = 1.0f;
    for (int i = 0; i < n; i++) {
        p *= x[(long)r * n + i];
        y[(long)r * n + i] = p;
    }
}
torch::Tensor cumprod_fwd(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), n = x.size(1);
    cumprod_serial<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, n);
    return y;
}
"""
ext = load_inline(name="cumprod_serial_90", cpp_sources="torch::Tensor cumprod_fwd(torch::Tensor x);", cuda_sources=src, functions=["cumprod_fwd"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return ext.cumprod_fwd(x.contiguous())
