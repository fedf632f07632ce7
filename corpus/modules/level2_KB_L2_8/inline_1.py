import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <float.h>

__global__ void pool_reduce(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ out,
                            int C, int D, int H, int W, float divisor) {
    __shared__ float buf[256];
    const int n = blockIdx.x;
    const int PD = D / 2, PH = H / 2, PW = W / 2;
    const int per = PD * PH * PW;
    float s = 0.f;
    for (int t = threadIdx.x; t < C * per; t += blockDim.x) {
        int c = t / per, r = t % per;
        int pw = r % PW, ph = (r / PW) % PH, pd = r / (PW * PH);
        const float* q = x + (((long)(n * C + c) * D + pd * 2) * H + ph * 2) * W + pw * 2;
        float m = -FLT_MAX;
        #pragma unroll
        for (int a = 0; a < 2; a++)
            #pragma unroll
            for (int b = 0; b < 2; b++) {
                const float* row = q + (a * H + b) * W;
                m = fmaxf(m, fmaxf(row[0], row[1]));
            }
        s += m;
    }
    buf[threadIdx.x] = s / (divisor * per);
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k >>= 1) {
        if (threadIdx.x < k) buf[threadIdx.x] += buf[threadIdx.x + k];
    }
    if (threadIdx.x == 0) {
        float b = 0.f;
        for (int c = 0; c < C; c++) b += bias[c];
        out[n] = buf[0] + b;
    }
}

torch::Tensor pool_reduce_forward(torch::Tensor x, torch::Tensor bias, double divisor) {
    int N = x.size(0);
    auto out = torch::empty({N, 1, 1, 1}, x.options());
    pool_reduce<<<N, 256>>>(x.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(),
                            x.size(1), x.size(2), x.size(3), x.size(4), (float)divisor);
    return out;
}
"""
_ext = load_inline(name="l2_8_pool_reduce",
                   cpp_sources="torch::Tensor pool_reduce_forward(torch::Tensor x, torch::Tensor bias, double divisor);",
                   cuda_sources=_cuda, functions=["pool_reduce_forward"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divisor, pool_size, bias_shape, sum_dim):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self.max_pool = nn.MaxPool3d(pool_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.sum_dim = sum_dim

    def forward(self, x):
        return _ext.pool_reduce_forward(self.conv(x).contiguous(), self.bias, self.divisor)
