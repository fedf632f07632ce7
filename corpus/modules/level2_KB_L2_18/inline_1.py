import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

s = r"""
#include <torch/extension.h>
__global__ void rowsum(const float* x, const float* w, const float* b, float* y, int B, int K, int O) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < B) {
        float t = 0.f;
        for (int o = 0; o < O; ++o) {
            float d = b[o];
            for (int k = 0; k < K; ++k) d += x[r * K + k] * w[o * K + k];
            t += d;
        }
        y[r] = t;  // max, mean and both logsumexp see one value only
    }
}
torch::Tensor rowsum_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty({x.size(0), 1}, x.options());
    int B = x.size(0);
    rowsum<<<(B + 63) / 64, 64>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), B, x.size(1), w.size(0));
    return y;
}
"""
k = load_inline(name="l2_18_rowsum", cpp_sources="torch::Tensor rowsum_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                cuda_sources=s, functions=["rowsum_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return k.rowsum_cuda(x, self.linear.weight, self.linear.bias)
