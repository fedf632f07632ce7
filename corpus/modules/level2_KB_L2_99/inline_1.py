import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define MAXN 64

// one thread per row, everything in registers / local memory
__global__ void row_kernel(const float* x, const float* w, const float* b, float* out, int B, int K, int N) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= B) return;
    float v[MAXN];
    float mx = -1e30f;
    for (int n = 0; n < N; ++n) {
        float acc = b[n];
        for (int k = 0; k < K; ++k) acc += x[r * K + k] * w[n * K + k];
        acc = 0.5f * acc * (1.0f + erff(acc * 0.70710678f));
        v[n] = acc;
        mx = fmaxf(mx, acc);
    }
    float s = 0.0f;
    for (int n = 0; n < N; ++n) { v[n] = expf(v[n] - mx); s += v[n]; }
    for (int n = 0; n < N; ++n) out[r * N + n] = v[n] / s;
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int B = x.size(0), K = x.size(1), N = w.size(0);
    auto out = torch::empty({B, N}, x.options());
    row_kernel<<<(B + 31) / 32, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), B, K, N);
    return out;
}
"""
rows = load_inline(name="linear_gelu_softmax_rows", cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                   cuda_sources=cuda_src, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return rows.run(x.contiguous(), self.linear.weight, self.linear.bias)
