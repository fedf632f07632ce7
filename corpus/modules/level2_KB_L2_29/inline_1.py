import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_src = r"""
#include <torch/extension.h>
__device__ float mish(float v) { return v * tanhf(v > 20.f ? v : log1pf(expf(v))); }

__global__ void k(const float* x, const float* w, const float* b, float* y, int K, int N) {
    // block per row, thread per output feature
    extern __shared__ float row[];
    int r = blockIdx.x, t = threadIdx.x;
    if (t < K) row[t] = x[r * K + t];
    __syncthreads();
    if (t < N) {
        float a = b[t];
        for (int i = 0; i < K; i++) a = fmaf(row[i], w[t * K + i], a);
        y[r * N + t] = mish(mish(a));
    }
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    int threads = ((std::max(N, K) + 31) / 32) * 32;
    k<<<M, threads, K * sizeof(float)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), K, N);
    return y;
}
"""
_lib = load_inline(name="l2_29_linear_mish", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                   cuda_sources=_src, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return _lib.run(x, self.linear.weight, self.linear.bias)
