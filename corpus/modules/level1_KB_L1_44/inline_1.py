import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

avg1d = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void avg_pool1d_kernel(const float* x, float* y, int rows, int L, int OL, int k, int s, int p)
{
    extern __shared__ float line[];
    // a block owns one row and stages it in shared memory
    int r = blockIdx.x;
    for (int i = threadIdx.x; i < L; i += blockDim.x) line[i] = x[r * L + i];
    __syncthreads();
    for (int o = threadIdx.x; o < OL; o += blockDim.x) {
        float acc = 0.f;
        int start = o * s - p;
        for (int j = 0; j < k; ++j) {
            int q = start + j;
            if (q >= 0 && q < L) acc += line[q];
        }
        y[r * OL + o] = acc / k;
    }
}

torch::Tensor avg_pool1d_cuda(torch::Tensor x, int64_t k, int64_t s, int64_t p)
{
    int rows = x.size(0) * x.size(1), L = x.size(2);
    int OL = (L + 2 * p - k) / s + 1;
    auto y = torch::empty({x.size(0), x.size(1), OL}, x.options());
    avg_pool1d_kernel<<<rows, 64, L * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, L, OL, k, s, p);
    return y;
}
"""
avg1d_ext = load_inline(name="avg_pool1d_smem",
                        cpp_sources="torch::Tensor avg_pool1d_cuda(torch::Tensor x, int64_t k, int64_t s, int64_t p);",
                        cuda_sources=avg1d, functions=["avg_pool1d_cuda"])


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = 1, padding: int = 0):
        super().__init__()
        self.k, self.s, self.p = kernel_size, stride, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return avg1d_ext.avg_pool1d_cuda(x.contiguous(), self.k, self.s, self.p)
