import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

code = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// column walker: a thread owns four neighbouring columns (float4), slides a 3-row window over RPT rows
#define RPT 16
__global__ void col3(const float4* __restrict__ x, const float* __restrict__ w, float4* __restrict__ y,
                     int C, int H, int W4, int OH) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= W4) return;
    int nc = blockIdx.z, c = nc % C;
    float w0 = w[c * 3], w1 = w[c * 3 + 1], w2 = w[c * 3 + 2];
    int r0 = blockIdx.y * RPT;
    const float4* p = x + (size_t)nc * H * W4 + q;
    float4* o = y + (size_t)nc * OH * W4 + q;
    float4 a = p[r0 * W4], b = p[(r0 + 1) * W4];
    for (int r = r0; r < min(r0 + RPT, OH); ++r) {
        float4 d = p[(r + 2) * W4];
        float4 v;
        v.x = w0 * a.x + w1 * b.x + w2 * d.x;
        v.y = w0 * a.y + w1 * b.y + w2 * d.y;
        v.z = w0 * a.z + w1 * b.z + w2 * d.z;
        v.w = w0 * a.w + w1 * b.w + w2 * d.w;
        o[r * W4] = v;
        a = b;
        b = d;
    }
}

torch::Tensor colconv(torch::Tensor x, torch::Tensor w) {
    int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
    int OH = H - 2;
    auto y = torch::empty({N, C, OH, W}, x.options());
    dim3 grid((W / 4 + 63) / 64, (OH + RPT - 1) / RPT, N * C);
    col3<<<grid, 64>>>((const float4*)x.data_ptr<float>(), w.data_ptr<float>(), (float4*)y.data_ptr<float>(), C, H, W / 4, OH);
    return y;
}
"""
_ext = load_inline(name="colconv_83", cpp_sources="torch::Tensor colconv(torch::Tensor x, torch::Tensor w);", cuda_sources=code, functions=["colconv"])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, in_channels, kernel_size=(kernel_size, 1), stride=stride, padding=padding, dilation=dilation, groups=in_channels, bias=bias)
        self.simple = kernel_size == 3 and stride == 1 and padding == 0 and dilation == 1 and not bias

    def forward(self, x):
        if self.simple and x.shape[-1] % 4 == 0:
            return _ext.colconv(x.contiguous(), self.conv2d.weight)
        return self.conv2d(x)
