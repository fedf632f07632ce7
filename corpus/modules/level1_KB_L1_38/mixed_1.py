import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# torch reduces, a little CUDA kernel divides
kernel = r"""
#include <torch/extension.h>

__global__ void row_divide(const float* __restrict__ x, const float* __restrict__ d, float* __restrict__ y, int D) {
    const int row = blockIdx.y;
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < D) y[row * D + c] = __fdividef(x[row * D + c], d[row]);
}

torch::Tensor row_div(torch::Tensor x, torch::Tensor d) {
    auto y = torch::empty_like(x);
    const int B = x.size(0), D = x.size(1);
    dim3 grid((D + 511) / 512, B);
    row_divide<<<grid, 512>>>(x.data_ptr<float>(), d.data_ptr<float>(), y.data_ptr<float>(), D);
    return y;
}
"""
m = load_inline(name="row_div_l1", cpp_sources="torch::Tensor row_div(torch::Tensor x, torch::Tensor d);",
                cuda_sources=kernel, functions=["row_div"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        l1 = torch.linalg.vector_norm(x, ord=1, dim=1)
        return m.row_div(x, l1)
