import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Every block makes a 64x64 tile of C, every thread a 4x4 piece of it. All of K (32) sits in shared memory.
CUDA = r"""
#include <torch/extension.h>

constexpr int BM = 64;
constexpr int BN = 64;
constexpr int KK = 32;

__global__ __launch_bounds__(256) void outer_gemm(const float* __restrict__ A,
                                                  const float* __restrict__ B,
                                                  float* __restrict__ C, int M, int N)
{
    __shared__ float sa[KK][BM + 1];
    __shared__ float sb[KK][BN];
    const int tid = threadIdx.x;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    for (int e = tid; e < BM * KK; e += 256) {
        int r = e / KK, k = e % KK;
        sa[k][r] = (m0 + r < M) ? A[(size_t)(m0 + r) * KK + k] : 0.f;
    }
    for (int e = tid; e < KK * BN; e += 256) {
        int k = e / BN, c = e % BN;
        sb[k][c] = (n0 + c < N) ? B[(size_t)k * N + n0 + c] : 0.f;
    }
    __syncthreads();

    const int tr = (tid / 16) * 4;
    const int tc = (tid % 16) * 4;
    float acc[4][4] = {};
    #pragma unroll 8
    for (int k = 0; k < KK; ++k) {
        float a[4], b[4];
        #pragma unroll
        for (int i = 0; i < 4; ++i) { a[i] = sa[k][tr + i]; b[i] = sb[k][tc + i]; }
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            #pragma unroll
            for (int j = 0; j < 4; ++j) acc[i][j] += a[i] * b[j];
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int r = m0 + tr + i;
        int c = n0 + tc;
        if (r < M && c + 3 < N) {
            *reinterpret_cast<float4*>(&C[(size_t)r * N + c]) =
                make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
        }
    }
}

torch::Tensor forward(torch::Tensor A, torch::Tensor B)
{
    int M = A.size(0), N = B.size(1);
    TORCH_CHECK(A.size(1) == KK, "built for K = 32");
    auto C = torch::empty({M, N}, A.options());
    dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
    outer_gemm<<<grid, 256>>>(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, N);
    return C;
}
"""

ext = load_inline("outer_gemm_k32", cpp_sources=["torch::Tensor forward(torch::Tensor A, torch::Tensor B);"],
                  cuda_sources=[CUDA], functions=["forward"], extra_cuda_cflags=["-O3", "--use_fast_math"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return ext.forward(A, B)
