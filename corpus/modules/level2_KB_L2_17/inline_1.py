import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void inorm(const float* __restrict__ x, float* __restrict__ y, int HW, float eps, float div) {
    __shared__ float sm, sv;
    const float* p = x + (size_t)blockIdx.x * HW;
    if (threadIdx.x == 0) { sm = 0.f; sv = 0.f; }
    __syncthreads();
    float s = 0.f, q = 0.f;
    for (int i = threadIdx.x; i < HW; i += blockDim.x) {
        float v = p[i];
        s += v;
        q += v * v;
    }
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_down_sync(0xffffffff, s, o);
        q += __shfl_down_sync(0xffffffff, q, o);
    }
    if (threadIdx.x % 32 == 0) {
        sm += s;
        sv += q;
    }
    __syncthreads();
    float mean = sm / HW;
    float inv = rsqrtf(sv / HW - mean * mean + eps) / div;
    for (int i = threadIdx.x; i < HW; i += blockDim.x)
        y[(size_t)blockIdx.x * HW + i] = (p[i] - mean) * inv;
}

torch::Tensor inorm_cuda(torch::Tensor x, double eps, double div) {
    auto y = torch::empty_like(x);
    inorm<<<x.size(0) * x.size(1), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(2) * x.size(3), (float)eps, (float)div);
    return y;
}
"""
ext = load_inline(name="l2_17_inorm", cpp_sources="torch::Tensor inorm_cuda(torch::Tensor x, double eps, double div);",
                  cuda_sources=src, functions=["inorm_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        return ext.inorm_cuda(self.conv(x), self.instance_norm.eps, self.divide_by)
