import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void lrelu_mul_lrelu(float4* __restrict__ y, const float* __restrict__ mult, long n4, int spatial4, int C, float slope) {
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float m = mult[(i / spatial4) % C];
    float4 v = y[i];
    v.x = v.x > 0 ? v.x : v.x * slope;  v.x *= m;  v.x = v.x > 0 ? v.x : v.x * slope;
    v.y = v.y > 0 ? v.y : v.y * slope;  v.y *= m;  v.y = v.y > 0 ? v.y : v.y * slope;
    v.z = v.z > 0 ? v.z : v.z * slope;  v.z *= m;  v.z = v.z > 0 ? v.z : v.z * slope;
    v.w = v.w > 0 ? v.w : v.w * slope;  v.w *= m;  v.w = v.w > 0 ? v.w : v.w * slope;
    y[i] = v;
}
void lml(torch::Tensor y, torch::Tensor mult, double slope) {
    long n4 = y.numel() / 4;
    int C = y.size(1);
    int spatial4 = y.size(2) * y.size(3) * y.size(4) / 4;
    int threads = 512;
    lrelu_mul_lrelu<<<(n4 + threads - 1) / threads, threads>>>((float4*)y.data_ptr<float>(), mult.data_ptr<float>(), n4, spatial4, C, (float)slope);
}
"""
ops = load_inline(name="lml_ops", cpp_sources="void lml(torch::Tensor y, torch::Tensor mult, double slope);", cuda_sources=src, functions=["lml"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, multiplier_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.leaky_relu = nn.LeakyReLU(negative_slope=0.2)
        self.max_pool = nn.MaxPool3d(kernel_size=2)

    def forward(self, x):
        y = self.conv_transpose(x)
        ops.lml(y, self.multiplier, 0.2)
        return F.max_pool3d(y, 2)
