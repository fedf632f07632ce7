import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

gelu_cuda = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>

// packed half2 math: two values per instruction
__global__ void gelu_h2(const float2* __restrict__ x, float2* __restrict__ y, int n2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int step = gridDim.x * blockDim.x;
    const __half2 k0 = __float2half2_rn(0.7978845608f);
    const __half2 k1 = __float2half2_rn(0.044715f);
    const __half2 one = __float2half2_rn(1.0f);
    const __half2 hlf = __float2half2_rn(0.5f);
    for (; i < n2; i += step) {
        __half2 v = __float22half2_rn(x[i]);
        __half2 cube = __hmul2(__hmul2(v, v), v);
        __half2 u = __hmul2(k0, __hfma2(k1, cube, v));
        // tanh(u) = 1 - 2 / (exp(2u) + 1)
        __half2 e = h2exp(__hadd2(u, u));
        __half2 th = __hsub2(one, __h2div(__hadd2(one, one), __hadd2(e, one)));
        __half2 r = __hmul2(__hmul2(hlf, v), __hadd2(one, th));
        y[i] = __half22float2(r);
    }
}

torch::Tensor gelu_half(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n2 = x.numel() / 2;
    gelu_h2<<<1056, 256>>>((const float2*)x.data_ptr<float>(), (float2*)y.data_ptr<float>(), n2);
    return y;
}
"""
gelu_mod = load_inline(name="gelu_h2_88", cpp_sources="torch::Tensor gelu_half(torch::Tensor x);",
                       cuda_sources=gelu_cuda, functions=["gelu_half"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return gelu_mod.gelu_half(x.contiguous())
