import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// One thread per output voxel, all taps read from global memory (L1 does the rest)
__global__ void conv3d_direct(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ cb,
                              const float* __restrict__ sc, const float* __restrict__ bi, float* __restrict__ y,
                              int N, int Ci, int D, int H, int W, int Co, int K) {
    int OD = D - K + 1, OH = H - K + 1, OW = W - K + 1;
    long total = (long)N * Co * OD * OH * OW;
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int ow = i % OW;
    long t = i / OW;
    int oh = t % OH; t /= OH;
    int od = t % OD; t /= OD;
    int oc = t % Co;
    int n = t / Co;
    float a = cb[oc];
    for (int c = 0; c < Ci; ++c)
        for (int kd = 0; kd < K; ++kd)
            for (int kh = 0; kh < K; ++kh)
                for (int kw = 0; kw < K; ++kw)
                    a += x[(((long)(n * Ci + c) * D + od + kd) * H + oh + kh) * W + ow + kw]
                       * w[(((oc * Ci + c) * K + kd) * K + kh) * K + kw];
    a = tanhf(a * sc[oc]) * bi[oc];
    y[i] = 1.f / (1.f + expf(-a));
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor cb, torch::Tensor sc, torch::Tensor bi) {
    int N = x.size(0), Ci = x.size(1), D = x.size(2), H = x.size(3), W = x.size(4), Co = w.size(0), K = w.size(2);
    auto y = torch::empty({N, Co, D - K + 1, H - K + 1, W - K + 1}, x.options());
    long total = y.numel();
    conv3d_direct<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), cb.data_ptr<float>(),
        sc.data_ptr<float>(), bi.data_ptr<float>(), y.data_ptr<float>(), N, Ci, D, H, W, Co, K);
    return y;
}
"""
c3 = load_inline(name="l2_48_conv3d_direct",
                 cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor cb, torch::Tensor sc, torch::Tensor bi);",
                 cuda_sources=src, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.scaling_factor = nn.Parameter(torch.randn(bias_shape))
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return c3.run(x.contiguous(), self.conv.weight, self.conv.bias, self.scaling_factor, self.bias)
