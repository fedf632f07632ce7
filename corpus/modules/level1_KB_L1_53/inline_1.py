import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math.h>

// float4 along the contiguous axis; threadIdx.y splits the reduced one
__global__ void min_mid_vec4(const float4* __restrict__ x, float4* __restrict__ y, int R, int I4) {
    __shared__ float4 part[8][32];
    int col = blockIdx.x * 32 + threadIdx.x;
    const float4* p = x + (size_t)blockIdx.y * R * I4;
    float4 m = make_float4(INFINITY, INFINITY, INFINITY, INFINITY);
    if (col < I4) {
        for (int r = threadIdx.y; r < R; r += 8) {
            float4 v = p[(size_t)r * I4 + col];
            m.x = fminf(m.x, v.x); m.y = fminf(m.y, v.y);
            m.z = fminf(m.z, v.z); m.w = fminf(m.w, v.w);
        }
    }
    part[threadIdx.y][threadIdx.x] = m;
    __syncthreads();
    if (threadIdx.y == 0 && col < I4) {
        for (int j = 1; j < 8; ++j) {
            float4 v = part[j][threadIdx.x];
            m.x = fminf(m.x, v.x); m.y = fminf(m.y, v.y);
            m.z = fminf(m.z, v.z); m.w = fminf(m.w, v.w);
        }
        y[(size_t)blockIdx.y * I4 + col] = m;
    }
}

torch::Tensor min_mid(torch::Tensor x) {
    int B = x.size(0), R = x.size(1), I = x.size(2);
    TORCH_CHECK(I % 4 == 0, "inner size must be a multiple of 4");
    auto y = torch::empty({B, I}, x.options());
    dim3 block(32, 8);
    dim3 grid((I / 4 + 31) / 32, B);
    min_mid_vec4<<<grid, block>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                  reinterpret_cast<float4*>(y.data_ptr<float>()), R, I / 4);
    return y;
}
"""

_min = load_inline("min_mid_vec4_ext", cpp_sources="torch::Tensor min_mid(torch::Tensor x);", cuda_sources=CUDA, functions=["min_mid"])


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        if self.dim in (1, -2) and x.dim() == 3:
            return _min.min_mid(x.contiguous())
        return torch.amin(x, dim=self.dim)
