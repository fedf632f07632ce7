import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void fused_act(float* data, const float* bias, int C, int S, long total) {
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < total) {
        float v = data[i];
        // relu then leaky relu: the second has no effect
        v = v > 0.0f ? v : 0.0f;
        v = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        v = 1.0f / (1.0f + __expf(-v));
        data[i] = v + bias[(i / S) % C];
    }
}

torch::Tensor fused_act_(torch::Tensor t, torch::Tensor bias) {
    long total = t.numel();
    int C = t.size(1);
    int S = t.size(2) * t.size(3) * t.size(4);
    const int threads = 512;
    fused_act<<<(total + threads - 1) / threads, threads>>>(t.data_ptr<float>(), bias.data_ptr<float>(), C, S, total);
    return t;
}
"""
mod = load_inline(name="l2_7_fused_act", cpp_sources="torch::Tensor fused_act_(torch::Tensor t, torch::Tensor bias);",
                  cuda_sources=src, functions=["fused_act_"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = F.conv3d(x, self.conv.weight)
        return mod.fused_act_(y, self.bias)
