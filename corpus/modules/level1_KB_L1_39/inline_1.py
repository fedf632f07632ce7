import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

l2_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void l2norm_kernel(const float* __restrict__ x, float* __restrict__ y, int dim) {
    const int row = blockIdx.x;
    const float4* xr = reinterpret_cast<const float4*>(x + (size_t)row * dim);
    float4* yr = reinterpret_cast<float4*>(y + (size_t)row * dim);
    const int n4 = dim / 4;

    float local = 0.0f;
    for (int i = threadIdx.x; i < n4; i += blockDim.x) {
        float4 v = xr[i];
        local += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    __shared__ float warp_part[32];
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        local += __shfl_down_sync(0xffffffff, local, offset);
    if (threadIdx.x % 32 == 0) warp_part[threadIdx.x / 32] = local;
    __syncthreads();
    if (threadIdx.x < 32) {
        float v = threadIdx.x < blockDim.x / 32 ? warp_part[threadIdx.x] : 0.0f;
        #pragma unroll
        for (int offset = 16; offset > 0; offset /= 2)
            v += __shfl_down_sync(0xffffffff, v, offset);
        if (threadIdx.x == 0) warp_part[0] = v;
    }
    __syncthreads();
    const float inv = rsqrtf(warp_part[0]);
    for (int i = threadIdx.x; i < n4; i += blockDim.x) {
        float4 v = xr[i];
        v.x *= inv; v.y *= inv; v.z *= inv; v.w *= inv;
        yr[i] = v;
    }
}

torch::Tensor l2norm(torch::Tensor x) {
    auto y = torch::empty_like(x);
    l2norm_kernel<<<x.size(0), 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

l2 = load_inline(name="l2norm_rows", cpp_sources="torch::Tensor l2norm(torch::Tensor x);",
                 cuda_sources=l2_src, functions=["l2norm"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return l2.l2norm(x)
