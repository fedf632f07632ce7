import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_cuda = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#define BS 16

__global__ void tril_matmul_kernel(const float* __restrict__ A, const float* __restrict__ B,
                                   float* __restrict__ C, int n)
{
    int row = blockIdx.y * BS + threadIdx.y;
    int col = blockIdx.x * BS + threadIdx.x;

    if (blockIdx.x > blockIdx.y) {         // tile strictly above the diagonal
        C[row * n + col] = 0.0f;
        return;
    }
    __shared__ float sA[BS][BS];
    __shared__ float sB[BS][BS];
    float acc = 0.0f;
    // only k in [col, row] contributes
    for (int t = blockIdx.x; t <= blockIdx.y; ++t) {
        sA[threadIdx.y][threadIdx.x] = A[row * n + t * BS + threadIdx.x];
        sB[threadIdx.y][threadIdx.x] = B[(t * BS + threadIdx.y) * n + col];
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < BS; ++k)
            acc += sA[threadIdx.y][k] * sB[k][threadIdx.x];
        __syncthreads();
    }
    C[row * n + col] = (col <= row) ? acc : 0.0f;
}

torch::Tensor tril_matmul(torch::Tensor A, torch::Tensor B)
{
    const int n = A.size(0);
    TORCH_CHECK(n % BS == 0);
    auto C = torch::empty_like(A);
    dim3 threads(BS, BS), blocks(n / BS, n / BS);
    tril_matmul_kernel<<<blocks, threads>>>(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), n);
    return C;
}
"""

_mod = load_inline(name="tril_matmul_mod",
                   cpp_sources="torch::Tensor tril_matmul(torch::Tensor A, torch::Tensor B);",
                   cuda_sources=_cuda, functions=["tril_matmul"], extra_cuda_cflags=["-O2"])


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        return _mod.tril_matmul(A, B)
