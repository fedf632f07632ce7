import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ln_cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void layer_norm_kernel(const float* __restrict__ x, const float* __restrict__ gamma,
                                  const float* __restrict__ beta, float* __restrict__ y, int D, float eps)
{
    extern __shared__ float sh[];
    float* s_sum = sh;
    float* s_sq  = sh + blockDim.x;
    const float* row = x + (size_t)blockIdx.x * D;
    float* out = y + (size_t)blockIdx.x * D;
    int tid = threadIdx.x;

    float a = 0, b = 0;
    for (int i = tid; i < D; i += blockDim.x) { float v = row[i]; a += v; b += v * v; }
    s_sum[tid] = a;
    s_sq[tid] = b;
    __syncthreads();
    for (int w = blockDim.x / 2; w > 0; w /= 2) {
        if (tid < w) { s_sum[tid] += s_sum[tid + w]; s_sq[tid] += s_sq[tid + w]; }
        __syncthreads();
    }
    float mean = s_sum[0] / D;
    float rstd = rsqrtf(s_sq[0] / D - mean * mean + eps);
    for (int i = tid; i < D; i += blockDim.x)
        out[i] = (row[i] - mean) * rstd * gamma[i] + beta[i];
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps)
{
    int D = gamma.numel();
    int rows = x.numel() / D;
    auto y = torch::empty_like(x);
    const int threads = 1024;
    layer_norm_kernel<<<rows, threads, 2 * threads * sizeof(float)>>>(
        x.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(), y.data_ptr<float>(), D, (float)eps);
    return y;
}
"""

ln_ext = load_inline(
    name="ln_one_block_per_row",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps);",
    cuda_sources=ln_cuda, functions=["layer_norm"])


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        return ln_ext.layer_norm(x, self.ln.weight, self.ln.bias, self.ln.eps)
