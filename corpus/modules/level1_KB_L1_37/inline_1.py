import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

fro = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void sq_sum(const float* __restrict__ x, float* __restrict__ total, int n) {
    float acc = 0.f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        acc += x[i] * x[i];
    // every warp adds its own result to the global total
    for (int o = 16; o; o >>= 1) acc += __shfl_xor_sync(0xffffffffu, acc, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, acc);
}

__global__ void scale_by_norm(const float* __restrict__ x, float* __restrict__ y,
                              const float* __restrict__ total, int n) {
    const float inv = rsqrtf(*total);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i] * inv;
}

torch::Tensor fro_norm(torch::Tensor x) {
    auto y = torch::empty_like(x);
    auto total = torch::zeros({1}, x.options());
    int n = (int)x.numel();
    sq_sum<<<1024, 256>>>(x.data_ptr<float>(), total.data_ptr<float>(), n);
    scale_by_norm<<<4096, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), total.data_ptr<float>(), n);
    return y;
}
"""

fro_mod = load_inline(name="fro_norm_mod", cpp_sources="torch::Tensor fro_norm(torch::Tensor x);",
                      cuda_sources=fro, functions=["fro_norm"], extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return fro_mod.fro_norm(x.contiguous())
