import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SRC = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// thread per output, rows of x staged in shared memory, weights read as float4
__global__ void lin_scale(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                          float* __restrict__ y, int K, int N, float s) {
    extern __shared__ float4 sx[];
    int row = blockIdx.x;
    const float4* xr = reinterpret_cast<const float4*>(x + row * K);
    for (int i = threadIdx.x; i < K / 4; i += blockDim.x) sx[i] = xr[i];
    for (int n = threadIdx.x; n < N; n += blockDim.x) {
        const float4* wr = reinterpret_cast<const float4*>(w + n * K);
        float acc = b[n];
        for (int i = 0; i < K / 4; ++i) {
            float4 a = sx[i], c = wr[i];
            acc += a.x * c.x + a.y * c.y + a.z * c.z + a.w * c.w;
        }
        y[row * N + n] = acc * s + acc;
    }
}

torch::Tensor lin_scale_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b, double s) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    lin_scale<<<M, 128, K * sizeof(float)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                             y.data_ptr<float>(), K, N, (float)s);
    return y;
}
"""
ext = load_inline(name="l2_40_lin_scale", cpp_sources="torch::Tensor lin_scale_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b, double s);",
                  cuda_sources=SRC, functions=["lin_scale_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scaling_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        return ext.lin_scale_cuda(x.contiguous(), self.matmul.weight, self.matmul.bias, self.scaling_factor)
