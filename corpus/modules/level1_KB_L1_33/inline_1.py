import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

bn_cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
    return v;
}

// one block for one channel: sums over N and HW, then normalises. 64 blocks only.
__global__ void bn_channel(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                           float* __restrict__ y, int N, int C, int HW, float eps) {
    const int c = blockIdx.x;
    const int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
    __shared__ float s1[32], s2[32];
    __shared__ float mean_s, rstd_s;
    float a = 0.f, q = 0.f;
    for (int n = 0; n < N; ++n) {
        const float* p = x + ((size_t)n * C + c) * HW;
        for (int i = threadIdx.x; i < HW; i += blockDim.x) {
            float v = p[i];
            a += v;
            q += v * v;
        }
    }
    a = warp_sum(a);
    q = warp_sum(q);
    if (lane == 0) { s1[wid] = a; s2[wid] = q; }
    __syncthreads();
    if (wid == 0) {
        int nw = blockDim.x / 32;
        a = lane < nw ? s1[lane] : 0.f;
        q = lane < nw ? s2[lane] : 0.f;
        a = warp_sum(a);
        q = warp_sum(q);
        if (lane == 0) {
            float cnt = (float)N * HW;
            float m = a / cnt;
            mean_s = m;
            rstd_s = rsqrtf(q / cnt - m * m + eps);
        }
    }
    __syncthreads();
    const float sc = rstd_s * w[c];
    const float sh = b[c] - mean_s * sc;
    for (int n = 0; n < N; ++n) {
        const size_t off = ((size_t)n * C + c) * HW;
        for (int i = threadIdx.x; i < HW; i += blockDim.x) y[off + i] = x[off + i] * sc + sh;
    }
}

torch::Tensor bn_forward(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps) {
    int N = x.size(0), C = x.size(1), HW = x.size(2) * x.size(3);
    auto y = torch::empty_like(x);
    bn_channel<<<C, 1024>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), N, C, HW, (float)eps);
    return y;
}
"""
bn_mod = load_inline(name="bn_channel_mod",
                     cpp_sources="torch::Tensor bn_forward(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps);",
                     cuda_sources=bn_cuda, functions=["bn_forward"])


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x):
        return bn_mod.bn_forward(x.contiguous(), self.bn.weight, self.bn.bias, self.bn.eps)
