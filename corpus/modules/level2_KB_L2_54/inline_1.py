import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_src = "torch::Tensor conv_mul_act(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor m);"

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#define CI 3
#define KS 3

// one thread computes one output element
__global__ void conv_direct(const float* __restrict__ x, const float* __restrict__ w,
                            const float* __restrict__ b, const float* __restrict__ m,
                            float* __restrict__ y, int N, int CO, int H, int W, int OH, int OW) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int total = N * CO * OH * OW;
    if (idx >= total) return;
    int ow = idx % OW;
    int oh = (idx / OW) % OH;
    int co = (idx / (OW * OH)) % CO;
    int n = idx / (OW * OH * CO);
    float acc = b[co];
    #pragma unroll
    for (int ci = 0; ci < CI; ++ci)
        #pragma unroll
        for (int kh = 0; kh < KS; ++kh)
            #pragma unroll
            for (int kw = 0; kw < KS; ++kw)
                acc += x[((n * CI + ci) * H + oh + kh) * W + ow + kw] * w[((co * CI + ci) * KS + kh) * KS + kw];
    acc *= m[co];
    acc = acc > 0.f ? acc : 0.01f * acc;
    y[idx] = 0.5f * acc * (1.f + erff(acc * 0.70710678f));
}

torch::Tensor conv_mul_act(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor m) {
    int N = x.size(0), H = x.size(2), W = x.size(3), CO = w.size(0);
    int OH = H - KS + 1, OW = W - KS + 1;
    auto y = torch::empty({N, CO, OH, OW}, x.options());
    int total = N * CO * OH * OW;
    conv_direct<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                              m.data_ptr<float>(), y.data_ptr<float>(), N, CO, H, W, OH, OW);
    return y;
}
"""

_ops = load_inline(name="conv_mul_lrelu_gelu", cpp_sources=cpp_src, cuda_sources=cuda_src,
                   functions=["conv_mul_act"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, multiplier_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.leaky_relu = nn.LeakyReLU()

    def forward(self, x):
        return _ops.conv_mul_act(x.contiguous(), self.conv.weight, self.conv.bias, self.multiplier)
