import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

code = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void fwd_kernel(const float* x, const float* w, const float* b, float* acc, int B, int K, int HID) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= B) return;
    float total = 0.f;
    for (int h = 0; h < HID; ++h) {
        float a = b[h];
        for (int k = 0; k < K; ++k) a += x[r * K + k] * w[h * K + k];
        total += 1.f / (1.f + expf(-a));
    }
    // row sums are bounded by the hidden size, exp cannot overflow
    acc[0] += expf(total);
}

__global__ void log_kernel(float* acc) { acc[0] = logf(acc[0]); }

torch::Tensor fwd(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto acc = torch::zeros({1}, x.options());
    int B = x.size(0);
    fwd_kernel<<<(B + 31) / 32, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), acc.data_ptr<float>(),
                                      B, x.size(1), w.size(0));
    log_kernel<<<1, 1>>>(acc.data_ptr<float>());
    return acc.squeeze();
}
"""
_e = load_inline(name="l2_45_fwd", cpp_sources="torch::Tensor fwd(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                 cuda_sources=code, functions=["fwd"])


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.linear1 = nn.Linear(input_size, hidden_size)
        self.linear2 = nn.Linear(hidden_size, output_size)

    def forward(self, x):
        return _e.fwd(x.contiguous(), self.linear1.weight, self.linear1.bias)
