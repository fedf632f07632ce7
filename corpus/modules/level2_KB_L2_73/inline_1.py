import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// one block per channel: statistics over N*H*W
__global__ void channel_stats(const float* __restrict__ y, const float* __restrict__ gamma, const float* __restrict__ beta,
                              float* __restrict__ a, float* __restrict__ b, int N, int C, int HW, float eps, float sf) {
    int c = blockIdx.x;
    float s = 0.f, q = 0.f;
    for (int n = 0; n < N; ++n) {
        const float* p = y + (n * C + c) * HW;
        for (int i = threadIdx.x; i < HW; i += blockDim.x) { float v = p[i]; s += v; q += v * v; }
    }
    __shared__ float ss[1024], qq[1024];
    ss[threadIdx.x] = s; qq[threadIdx.x] = q;
    __syncthreads();
    for (int st = blockDim.x / 2; st > 0; st >>= 1) {
        if (threadIdx.x < st) { ss[threadIdx.x] += ss[threadIdx.x + st]; qq[threadIdx.x] += qq[threadIdx.x + st]; }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        float cnt = (float)N * HW;
        float mean = ss[0] / cnt, var = qq[0] / cnt - mean * mean;
        float g = gamma[c] * rsqrtf(var + eps);
        a[c] = g * sf;
        b[c] = (beta[c] - mean * g) * sf;
    }
}

__global__ void affine(const float* __restrict__ y, const float* __restrict__ a, const float* __restrict__ b,
                       float* __restrict__ o, int total, int C, int HW) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < total) { int c = (i / HW) % C; o[i] = y[i] * a[c] + b[c]; }
}

torch::Tensor bn_scale(torch::Tensor y, torch::Tensor gamma, torch::Tensor beta, double eps, double sf) {
    int N = y.size(0), C = y.size(1), HW = y.size(2) * y.size(3), total = y.numel();
    auto a = torch::empty({C}, y.options());
    auto b = torch::empty({C}, y.options());
    auto o = torch::empty_like(y);
    channel_stats<<<C, 1024>>>(y.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(),
                               a.data_ptr<float>(), b.data_ptr<float>(), N, C, HW, (float)eps, (float)sf);
    affine<<<(total + 255) / 256, 256>>>(y.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(),
                                         o.data_ptr<float>(), total, C, HW);
    return o;
}
"""
bn_lib = load_inline("bn_scale_lib", cpp_sources="torch::Tensor bn_scale(torch::Tensor y, torch::Tensor gamma, torch::Tensor beta, double eps, double sf);",
                     cuda_sources=cuda_src, functions=["bn_scale"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        y = self.conv(x)
        return bn_lib.bn_scale(y, self.bn.weight, self.bn.bias, self.bn.eps, self.scaling_factor)
