import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_decl = "torch::Tensor tall_skinny(torch::Tensor A, torch::Tensor B);"
cuda_def = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// C[M, M] = A[M, 16] * B[16, M]; a thread keeps one column of B in registers and walks over rows.
template <int K>
__global__ void tall_skinny_kernel(const float* __restrict__ A, const float* __restrict__ B,
                                   float* __restrict__ C, int M, int rows_per_block) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row0 = blockIdx.y * rows_per_block;
    extern __shared__ float arow[];
    for (int i = threadIdx.x; i < rows_per_block * K; i += blockDim.x) {
        int r = row0 + i / K;
        arow[i] = r < M ? A[r * K + i % K] : 0.0f;
    }
    __syncthreads();
    if (col >= M) return;
    float b[K];
    #pragma unroll
    for (int k = 0; k < K; ++k) b[k] = B[k * M + col];
    for (int r = 0; r < rows_per_block && row0 + r < M; ++r) {
        float s = 0.0f;
        #pragma unroll
        for (int k = 0; k < K; ++k) s = fmaf(arow[r * K + k], b[k], s);
        C[(long long)(row0 + r) * M + col] = s;
    }
}

torch::Tensor tall_skinny(torch::Tensor A, torch::Tensor B) {
    int M = A.size(0);
    auto C = torch::empty({M, (int)B.size(1)}, A.options());
    const int rows = 64;
    dim3 grid((M + 255) / 256, (M + rows - 1) / rows);
    tall_skinny_kernel<16><<<grid, 256, rows * 16 * sizeof(float)>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, rows);
    return C;
}
"""

tall = load_inline(name="tall_skinny_mm", cpp_sources=cpp_decl, cuda_sources=cuda_def,
                   functions=["tall_skinny"], verbose=True)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        return tall.tall_skinny(A.contiguous(), B.contiguous())
