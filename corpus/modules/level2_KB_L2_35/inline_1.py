import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// Everything in one kernel. A thread produces one pooled value: four convolutions, hardswish, max, mish.
__global__ void conv_hs_pool_mish(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                                  float* __restrict__ y, int Ci, int Co, int H, int W, int PH, int PW, float sub) {
    __shared__ float ws[16 * 27];
    for (int i = threadIdx.x; i < Co * Ci * 9; i += blockDim.x) ws[i] = w[i];
    __syncthreads();
    int n = blockIdx.y;
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= Co * PH * PW) return;
    int pw = idx % PW, ph = (idx / PW) % PH, oc = idx / (PW * PH);
    float acc[2][2] = {{0.f, 0.f}, {0.f, 0.f}};
    for (int c = 0; c < Ci; ++c) {
        float p[4][4];
        const float* src = x + ((n * Ci + c) * H + ph * 2) * W + pw * 2;
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            #pragma unroll
            for (int j = 0; j < 4; ++j) p[i][j] = src[i * W + j];
        const float* k = ws + (oc * Ci + c) * 9;
        #pragma unroll
        for (int u = 0; u < 2; ++u)
            #pragma unroll
            for (int v = 0; v < 2; ++v)
                #pragma unroll
                for (int i = 0; i < 3; ++i)
                    #pragma unroll
                    for (int j = 0; j < 3; ++j) acc[u][v] += p[u + i][v + j] * k[i * 3 + j];
    }
    float best = -1e30f;
    #pragma unroll
    for (int q = 0; q < 4; ++q) {
        float v = acc[q >> 1][q & 1] + b[oc] - sub;
        float h = v * fminf(fmaxf(v + 3.f, 0.f), 6.f) / 6.f;
        best = fmaxf(best, h);
    }
    y[n * Co * PH * PW + idx] = best * tanhf(log1pf(expf(best)));
}

torch::Tensor fwd(torch::Tensor x, torch::Tensor w, torch::Tensor b, double sub) {
    int N = x.size(0), Ci = x.size(1), H = x.size(2), W = x.size(3), Co = w.size(0);
    int PH = (H - 2) / 2, PW = (W - 2) / 2;
    auto y = torch::empty({N, Co, PH, PW}, x.options());
    dim3 grid((Co * PH * PW + 191) / 192, N);
    conv_hs_pool_mish<<<grid, 192>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                                     Ci, Co, H, W, PH, PW, (float)sub);
    return y;
}
"""
fused = load_inline(name="l2_35_all_in_one", cpp_sources="torch::Tensor fwd(torch::Tensor x, torch::Tensor w, torch::Tensor b, double sub);",
                    cuda_sources=source, functions=["fwd"], extra_cuda_cflags=["-O3", "-use_fast_math"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, subtract_value, pool_kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value = subtract_value
        self.pool = nn.MaxPool2d(pool_kernel_size)

    def forward(self, x):
        return fused.fwd(x, self.conv.weight, self.conv.bias, self.subtract_value)
