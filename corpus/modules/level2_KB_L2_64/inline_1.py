import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

code = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ __forceinline__ float gelu1(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }

__global__ void lse_rows(const float* y, float* out, int N) {
    extern __shared__ float sm[];
    int t = threadIdx.x;
    const float* r = y + blockIdx.x * N;
    float mx = -1e30f;
    for (int i = t; i < N; i += blockDim.x) mx = fmaxf(mx, r[i]);
    sm[t] = mx;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) sm[t] = fmaxf(sm[t], sm[t + s]);
        __syncthreads();
    }
    mx = sm[0];
    float acc = 0.0f;
    for (int i = t; i < N; i += blockDim.x) acc += expf(r[i] - mx);
    sm[t] = acc;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) sm[t] += sm[t + s];
        __syncthreads();
    }
    if (t == 0) {
        float v = mx + logf(sm[0]);
        if (v < 0) v *= 0.01f;
        if (v < 0) v *= 0.01f;
        out[blockIdx.x] = gelu1(gelu1(v));
    }
}

torch::Tensor lse_gelu(torch::Tensor y) {
    auto out = torch::empty({y.size(0), 1}, y.options());
    int threads = 256;
    lse_rows<<<y.size(0), threads, threads * sizeof(float)>>>(y.data_ptr<float>(), out.data_ptr<float>(), y.size(1));
    return out;
}
"""

m = load_inline(name="lse_gelu_ext", cpp_sources="torch::Tensor lse_gelu(torch::Tensor y);", cuda_sources=code, functions=["lse_gelu"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        return m.lse_gelu(self.linear(x))
