import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// 64x64 block tile, 16-deep K slices, 4x4 micro-tile per thread
#define BM 64
#define BN 64
#define BK 16

__global__ void __launch_bounds__(256) gemm_bias_relu(const float* __restrict__ A, const float* __restrict__ W,
                               const float* __restrict__ bias, float* __restrict__ C, int M, int N, int K) {
    __shared__ float As[BK][BM];
    __shared__ float Ws[BK][BN];
    int tid = threadIdx.x;
    int tx = tid % 16, ty = tid / 16;
    int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    int lr = tid / 4, lc = (tid % 4) * 4;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        float4 a = *reinterpret_cast<const float4*>(A + (m0 + lr) * K + k0 + lc);
        float4 w = *reinterpret_cast<const float4*>(W + (n0 + lr) * K + k0 + lc);
        As[lc][lr] = a.x; As[lc + 1][lr] = a.y; As[lc + 2][lr] = a.z; As[lc + 3][lr] = a.w;
        Ws[lc][lr] = w.x; Ws[lc + 1][lr] = w.y; Ws[lc + 2][lr] = w.z; Ws[lc + 3][lr] = w.w;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float ar[4], wr[4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) { ar[i] = As[k][ty * 4 + i]; wr[i] = Ws[k][tx * 4 + i]; }
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                #pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += ar[i] * wr[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            int n = n0 + tx * 4 + j;
            C[(m0 + ty * 4 + i) * N + n] = fmaxf(acc[i][j] + bias[n], 0.f);
        }
}

torch::Tensor gemm_bias_relu_cuda(torch::Tensor A, torch::Tensor W, torch::Tensor bias) {
    int M = A.size(0), K = A.size(1), N = W.size(0);
    TORCH_CHECK(M % BM == 0 && N % BN == 0 && K % BK == 0, "sizes must be tile multiples");
    auto C = torch::empty({M, N}, A.options());
    gemm_bias_relu<<<dim3(N / BN, M / BM), 256>>>(A.data_ptr<float>(), W.data_ptr<float>(), bias.data_ptr<float>(), C.data_ptr<float>(), M, N, K);
    return C;
}
"""
gemm_ext = load_inline(name="gemm_bias_relu_ext",
                       cpp_sources="torch::Tensor gemm_bias_relu_cuda(torch::Tensor A, torch::Tensor W, torch::Tensor bias);",
                       cuda_sources=cuda_src, functions=["gemm_bias_relu_cuda"], extra_cuda_cflags=["-O3", "--use_fast_math"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return gemm_ext.gemm_bias_relu_cuda(x.contiguous(), self.gemm.weight, self.bias)
