import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

pw_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// pointwise: thread per pixel, loops over all output channels, weights in shared memory
__global__ void pw_kernel(const float* __restrict__ t, const float* __restrict__ w, float* __restrict__ y,
                          int C, int OC, int HW) {
    extern __shared__ float ws[];
    for (int i = threadIdx.x; i < C * OC; i += blockDim.x) ws[i] = w[i];
    __syncthreads();
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    int n = blockIdx.y;
    if (p >= HW) return;
    const float* tp = t + (size_t)n * C * HW + p;
    float* yp = y + (size_t)n * OC * HW + p;
    for (int o = 0; o < OC; ++o) {
        float s = 0.f;
        for (int c = 0; c < C; ++c) s += tp[(size_t)c * HW] * ws[o * C + c];
        yp[(size_t)o * HW] = s;
    }
}

torch::Tensor pointwise(torch::Tensor t, torch::Tensor w) {
    int N = t.size(0), C = t.size(1), HW = t.size(2) * t.size(3), OC = w.size(0);
    auto y = torch::empty({N, OC, t.size(2), t.size(3)}, t.options());
    pw_kernel<<<dim3((HW + 255) / 256, N), 256, C * OC * sizeof(float)>>>(
        t.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), C, OC, HW);
    return y;
}
"""
pw_mod = load_inline(name="pw_only_86", cpp_sources="torch::Tensor pointwise(torch::Tensor t, torch::Tensor w);",
                     cuda_sources=pw_src, functions=["pointwise"])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.depthwise = nn.Conv2d(in_channels, in_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=in_channels, bias=bias)
        self.pointwise = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=bias)

    def forward(self, x):
        t = self.depthwise(x)
        return pw_mod.pointwise(t.contiguous(), self.pointwise.weight)
