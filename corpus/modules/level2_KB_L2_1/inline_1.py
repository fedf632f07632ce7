import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_relu_bias(const float* __restrict__ x, const float* __restrict__ w,
                               const float* __restrict__ cb, const float* __restrict__ bias,
                               float* __restrict__ y,
                               int N, int Cin, int H, int W, int Cout, int K, int Ho, int Wo) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int total = N * Cout * Ho * Wo;
    if (idx >= total) return;
    int ow = idx % Wo;
    int oh = (idx / Wo) % Ho;
    int oc = (idx / (Wo * Ho)) % Cout;
    int n  = idx / (Wo * Ho * Cout);
    float acc = cb[oc];
    for (int ic = 0; ic < Cin; ++ic)
        for (int kh = 0; kh < K; ++kh)
            for (int kw = 0; kw < K; ++kw)
                acc += x[((n * Cin + ic) * H + oh + kh) * W + ow + kw]
                     * w[((oc * Cin + ic) * K + kh) * K + kw];
    acc = acc > 0.f ? acc : 0.f;
    y[idx] = acc + bias[oc];
}

torch::Tensor conv_relu_bias_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor cb, torch::Tensor bias) {
    int N = x.size(0), Cin = x.size(1), H = x.size(2), W = x.size(3);
    int Cout = w.size(0), K = w.size(2);
    int Ho = H - K + 1, Wo = W - K + 1;
    auto y = torch::empty({N, Cout, Ho, Wo}, x.options());
    int total = y.numel();
    int threads = 256;
    conv_relu_bias<<<(total + threads - 1) / threads, threads>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), cb.data_ptr<float>(), bias.data_ptr<float>(),
        y.data_ptr<float>(), N, Cin, H, W, Cout, K, Ho, Wo);
    return y;
}
"""
cpp_src = "torch::Tensor conv_relu_bias_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor cb, torch::Tensor bias);"

ext = load_inline(name="l2_1_conv_relu_bias", cpp_sources=cpp_src, cuda_sources=cuda_src,
                  functions=["conv_relu_bias_cuda"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return ext.conv_relu_bias_cuda(x.contiguous(), self.conv.weight, self.conv.bias, self.bias)
