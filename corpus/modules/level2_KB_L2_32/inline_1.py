import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scale_min(const float* __restrict__ in, float* __restrict__ out, int C, int HW, int total, float scale) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= total) return;
    int n = idx / HW;
    int p = idx - n * HW;
    const float* base = in + n * C * HW + p;
    float m = 0.0f;
    for (int c = 0; c < C; c++) {
        float v = base[c * HW] * scale;
        if (v < m) m = v;
    }
    out[idx] = m;
}

torch::Tensor scale_min_cuda(torch::Tensor in, double scale) {
    auto N = in.size(0), C = in.size(1), H = in.size(2), W = in.size(3);
    auto out = torch::empty({N, 1, H, W}, in.options());
    int total = N * H * W;
    scale_min<<<(total + 255) / 256, 256>>>(in.data_ptr<float>(), out.data_ptr<float>(), C, H * W, total, (float)scale);
    return out;
}
"""
m = load_inline(name="l2_32_scale_min", cpp_sources="torch::Tensor scale_min_cuda(torch::Tensor in, double scale);",
                cuda_sources=src, functions=["scale_min_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        return m.scale_min_cuda(self.conv(x).contiguous(), self.scale_factor)
