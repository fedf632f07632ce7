import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

code = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__device__ __forceinline__ float fast_tanh(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__global__ void tanh_v4(const float4* __restrict__ x, float4* __restrict__ y, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 v = __ldg(x + i);
    y[i] = make_float4(fast_tanh(v.x), fast_tanh(v.y), fast_tanh(v.z), fast_tanh(v.w));
}

torch::Tensor tanh_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous() && x.numel() % 4 == 0);
    auto y = torch::empty_like(x);
    int n4 = x.numel() / 4;
    tanh_v4<<<(n4 + 127) / 128, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
        (const float4*)x.data_ptr<float>(), (float4*)y.data_ptr<float>(), n4);
    return y;
}
"""

fast = load_inline(name="fast_tanh_v4", cpp_sources="torch::Tensor tanh_forward(torch::Tensor x);",
                   cuda_sources=code, functions=["tanh_forward"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return fast.tanh_forward(x)
