import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void lin_in_res(const float* __restrict__ x, const float* __restrict__ y, const float* __restrict__ wt,
                           const float* __restrict__ b, float* __restrict__ out, int K, int N, float eps) {
    extern __shared__ float sm[];
    float* xs = sm;
    float* red = sm + K;
    int r = blockIdx.x, t = threadIdx.x;
    if (t < K) xs[t] = x[r * K + t];
    __syncthreads();
    // wt is (K, N): neighbouring threads read neighbouring addresses
    float h = b[t];
    for (int k = 0; k < K; ++k) h += xs[k] * wt[k * N + t];
    red[t] = h;
    __syncthreads();
    for (int s = N / 2; s > 0; s >>= 1) {
        if (t < s) red[t] += red[t + s];
        __syncthreads();
    }
    float mean = red[0] / N;
    __syncthreads();
    float d = h - mean;
    red[t] = d * d;
    __syncthreads();
    for (int s = N / 2; s > 0; s >>= 1) {
        if (t < s) red[t] += red[t + s];
        __syncthreads();
    }
    float v = d * rsqrtf(red[0] / N + eps);
    float yy = y[r * N + t];
    out[r * N + t] = (v + yy) * yy;
}

torch::Tensor lin_in_res_cuda(torch::Tensor x, torch::Tensor y, torch::Tensor w, torch::Tensor b, double eps) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto wt = w.t().contiguous();
    auto out = torch::empty_like(y);
    lin_in_res<<<M, N, (K + N) * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), wt.data_ptr<float>(),
                                                  b.data_ptr<float>(), out.data_ptr<float>(), K, N, (float)eps);
    return out;
}
"""
lir = load_inline(name="l2_28_lir",
                  cpp_sources="torch::Tensor lin_in_res_cuda(torch::Tensor x, torch::Tensor y, torch::Tensor w, torch::Tensor b, double eps);",
                  cuda_sources=src, functions=["lin_in_res_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.bmm = nn.Linear(in_features, out_features)
        self.instance_norm = nn.InstanceNorm2d(out_features, eps=eps, momentum=momentum)

    def forward(self, x, y):
        return lir.lin_in_res_cuda(x, y, self.bmm.weight, self.bmm.bias, self.instance_norm.eps)
