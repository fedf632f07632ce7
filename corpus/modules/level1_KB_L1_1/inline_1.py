import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 32

__global__ void tiled_matmul(const float* __restrict__ A, const float* __restrict__ B,
                             float* __restrict__ C, int n) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    float sum = 0.f;
    for (int t = 0; t < (n + TILE - 1) / TILE; ++t) {
        int ak = t * TILE + tx;
        int bk = t * TILE + ty;
        As[ty][tx] = (row < n && ak < n) ? A[row * n + ak] : 0.f;
        Bs[ty][tx] = (bk < n && col < n) ? B[bk * n + col] : 0.f;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < TILE; ++k) sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = sum;
}

torch::Tensor square_matmul(torch::Tensor A, torch::Tensor B) {
    int n = A.size(0);
    auto C = torch::zeros({n, n}, A.options());
    dim3 block(TILE, TILE);
    dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    tiled_matmul<<<grid, block>>>(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), n);
    return C;
}
"""

cpp_src = "torch::Tensor square_matmul(torch::Tensor A, torch::Tensor B);"

square_matmul_ext = load_inline(
    name="square_matmul_ext",
    cpp_sources=cpp_src,
    cuda_sources=cuda_src,
    functions=["square_matmul"],
    verbose=False,
)


class ModelNew(nn.Module):
    """Square matmul done with 32x32 shared memory tiles."""

    def __init__(self):
        super().__init__()
        self.ext = square_matmul_ext

    def forward(self, A, B):
        return self.ext.square_matmul(A.contiguous(), B.contiguous())
