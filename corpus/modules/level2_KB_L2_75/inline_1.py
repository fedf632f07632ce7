import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cfloat>

// one block (256 threads) per row: warp w handles group w (32 channels)
__global__ void gn_min_bias(const float* __restrict__ h, const float* __restrict__ gw, const float* __restrict__ gb,
                            const float* __restrict__ bias, float* __restrict__ out, int C, float eps) {
    __shared__ float mins[32];
    int row = blockIdx.x, c = threadIdx.x;
    int lane = c & 31, warp = c >> 5;
    float v = h[row * C + c];
    float s = v, q = v * v;
    for (int o = 16; o > 0; o >>= 1) {
        s += __shfl_xor_sync(0xffffffff, s, o);
        q += __shfl_xor_sync(0xffffffff, q, o);
    }
    float mean = s / 32.f;
    float var = q / 32.f - mean * mean;
    float y = (v - mean) * rsqrtf(var + eps) * gw[c] + gb[c];
    for (int o = 16; o > 0; o >>= 1) y = fminf(y, __shfl_xor_sync(0xffffffff, y, o));
    if (lane == 0) mins[warp] = y;
    float m = FLT_MAX;
    for (int i = 0; i < blockDim.x / 32; ++i) m = fminf(m, mins[i]);
    out[(long)c * gridDim.x + row] = m + bias[c];
}

torch::Tensor gn_min_bias_cuda(torch::Tensor h, torch::Tensor gw, torch::Tensor gb, torch::Tensor bias, double eps) {
    int B = h.size(0), C = h.size(1);
    auto out = torch::empty({1, C, B, 1}, h.options());
    gn_min_bias<<<B, C>>>(h.data_ptr<float>(), gw.data_ptr<float>(), gb.data_ptr<float>(), bias.data_ptr<float>(),
                          out.data_ptr<float>(), C, (float)eps);
    return out;
}
"""

k = load_inline(name="gn_min_bias_k", cuda_sources=cuda_src, functions=["gn_min_bias_cuda"],
                cpp_sources="torch::Tensor gn_min_bias_cuda(torch::Tensor h, torch::Tensor gw, torch::Tensor gb, torch::Tensor bias, double eps);")


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super(ModelNew, self).__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        h = self.gemm(x)
        return k.gn_min_bias_cuda(h, self.group_norm.weight, self.group_norm.bias, self.bias, self.group_norm.eps)
