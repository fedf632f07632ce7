import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

code = r"""
#include <torch/extension.h>
__global__ void fuse4(const float4* __restrict__ y, const float* __restrict__ bias, float4* __restrict__ out,
                      int n4, int S4, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float b = bias[(i / S4) % C];
    float4 v = y[i];
    float4 r;
    r.x = (v.x + b + v.x) * v.x + v.x;
    r.y = (v.y + b + v.y) * v.y + v.y;
    r.z = (v.z + b + v.z) * v.z + v.z;
    r.w = (v.w + b + v.w) * v.w + v.w;
    out[i] = r;
}
torch::Tensor fuse(torch::Tensor y, torch::Tensor bias) {
    TORCH_CHECK(y.is_contiguous(), "contiguous input expected");
    auto out = torch::empty_like(y);
    int n4 = y.numel() / 4;
    int S4 = y.size(2) * y.size(3) * y.size(4) / 4;
    fuse4<<<(n4 + 255) / 256, 256>>>((const float4*)y.data_ptr<float>(), bias.data_ptr<float>(),
                                     (float4*)out.data_ptr<float>(), n4, S4, y.size(1));
    return out;
}
"""
_fuse = load_inline(name="l2_20_fuse", cpp_sources="torch::Tensor fuse(torch::Tensor y, torch::Tensor bias);",
                    cuda_sources=code, functions=["fuse"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return _fuse.fuse(self.conv_transpose(x), self.bias)
