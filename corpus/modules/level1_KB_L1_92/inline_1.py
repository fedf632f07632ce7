import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void exclusive_cumsum_kernel(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    extern __shared__ float buf[];
    int row = blockIdx.x;
    int tid = threadIdx.x;
    int per = (cols + blockDim.x - 1) / blockDim.x;
    int lo = tid * per, hi = min(lo + per, cols);
    float local = 0.f;
    for (int i = lo; i < hi; ++i) local += x[(size_t)row * cols + i];
    buf[tid] = local;
    __syncthreads();
    for (int off = 1; off < blockDim.x; off <<= 1) {
        float t = tid >= off ? buf[tid - off] : 0.f;
        __syncthreads();
        buf[tid] += t;
        __syncthreads();
    }
    float run = tid > 0 ? buf[tid - 1] : 0.f;
    for (int i = lo; i < hi; ++i) {
        out[(size_t)row * cols + i] = run;
        run += x[(size_t)row * cols + i];
    }
}

torch::Tensor exclusive_cumsum(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int threads = 256;
    exclusive_cumsum_kernel<<<x.size(0), threads, threads * sizeof(float)>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
    return out;
}
"""

exclusive = load_inline(name="exclusive_cumsum_92", cpp_sources="torch::Tensor exclusive_cumsum(torch::Tensor x);",
                        cuda_sources=cuda_source, functions=["exclusive_cumsum"], verbose=False)


class ModelNew(nn.Module):
    """Exclusive cumulative sum (does not include the current element)."""

    def __init__(self, dim):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x):
        return exclusive.exclusive_cumsum(x.contiguous())
