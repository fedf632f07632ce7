import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// A group holds 32 features: one warp per (row, group), statistics with shuffles.
__global__ void swish_bias_gn(const float* __restrict__ h, const float* __restrict__ bias, const float* __restrict__ gamma,
                              const float* __restrict__ beta, float* __restrict__ out, int rows, int F, int gs, float eps) {
    int gw = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    int G = F / gs;
    if (gw >= rows * G) return;
    int f = (gw % G) * gs + lane;
    size_t off = (size_t)(gw / G) * F + f;
    float v = h[off];
    v = v / (1.f + __expf(-v)) + bias[f];
    float s = v, q = v * v;
    #pragma unroll
    for (int o = 16; o > 0; o /= 2) {
        s += __shfl_xor_sync(0xffffffffu, s, o);
        q += __shfl_xor_sync(0xffffffffu, q, o);
    }
    float mean = s / 32.f;
    float var = q / 32.f - mean * mean;
    out[off] = (v - mean) * rsqrtf(var + eps) * gamma[f] + beta[f];
}

torch::Tensor swish_bias_gn_cuda(torch::Tensor h, torch::Tensor bias, torch::Tensor gamma, torch::Tensor beta, int64_t groups, double eps) {
    int rows = h.size(0), F = h.size(1);
    TORCH_CHECK(F / groups == 32, "group size must be 32");
    auto out = torch::empty_like(h);
    int warps = rows * groups;
    swish_bias_gn<<<(warps + 7) / 8, 256>>>(h.data_ptr<float>(), bias.data_ptr<float>(), gamma.data_ptr<float>(),
                                            beta.data_ptr<float>(), out.data_ptr<float>(), rows, F, 32, (float)eps);
    return out;
}
"""
op = load_inline(name="l2_37_swish_gn",
                 cpp_sources="torch::Tensor swish_bias_gn_cuda(torch::Tensor h, torch::Tensor bias, torch::Tensor gamma, torch::Tensor beta, int64_t groups, double eps);",
                 cuda_sources=cuda, functions=["swish_bias_gn_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        h = self.matmul(x)
        gn = self.group_norm
        return op.swish_bias_gn_cuda(h, self.bias, gn.weight, gn.bias, gn.num_groups, gn.eps)
