import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void lrelu_add_clamp_gelu(const float* __restrict__ x, const float* __restrict__ t, float* __restrict__ y,
                                     int spatial, int C) {
    // grid.y = n * C + c, grid.x walks the volume
    int nc = blockIdx.y;
    float add = t[nc % C];
    const float* px = x + (long)nc * spatial;
    float* py = y + (long)nc * spatial;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < spatial; i += gridDim.x * blockDim.x) {
        float v = px[i];
        v = v > 0.f ? v : 0.2f * v;
        v = fminf(fmaxf(v + add, -1.f), 1.f);
        py[i] = 0.5f * v * (1.f + erff(v * 0.70710678f));
    }
}

torch::Tensor post(torch::Tensor x, torch::Tensor t) {
    auto y = torch::empty_like(x);
    int C = x.size(1), spatial = x.size(2) * x.size(3) * x.size(4);
    dim3 grid(8, x.size(0) * C);
    lrelu_add_clamp_gelu<<<grid, 256>>>(x.data_ptr<float>(), t.data_ptr<float>(), y.data_ptr<float>(), spatial, C);
    return y;
}
"""
post_ext = load_inline(name="lrelu_add_clamp_gelu_ext", cpp_sources="torch::Tensor post(torch::Tensor x, torch::Tensor t);",
                       cuda_sources=cuda_src, functions=["post"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, sum_tensor_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.sum_tensor = nn.Parameter(torch.randn(sum_tensor_shape))

    def forward(self, x):
        return post_ext.post(self.conv(x).contiguous(), self.sum_tensor)
