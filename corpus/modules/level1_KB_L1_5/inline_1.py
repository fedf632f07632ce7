import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_code = r'''
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scalar_mul_vec4(const float4* __restrict__ in, float4* __restrict__ out,
                                const float s, const size_t n4)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += stride) {
        float4 v = in[i];
        v.x *= s;  v.y *= s;  v.z *= s;  v.w *= s;
        out[i] = v;
    }
}

__global__ void scalar_mul_tail(const float* in, float* out, const float s, size_t start, size_t n)
{
    size_t i = start + threadIdx.x;
    if (i < n) out[i] = in[i] * s;
}

torch::Tensor scalar_mul(torch::Tensor x, double s)
{
    auto y = torch::empty_like(x);
    size_t n = x.numel();
    size_t n4 = n / 4;
    if (n4 > 0) {
        scalar_mul_vec4<<<132 * 16, 256>>>(
            reinterpret_cast<const float4*>(x.data_ptr<float>()),
            reinterpret_cast<float4*>(y.data_ptr<float>()), (float)s, n4);
    }
    if (n4 * 4 < n) {
        scalar_mul_tail<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), (float)s, n4 * 4, n);
    }
    return y;
}
'''

_ext = load_inline(
    name='scalar_mul_float4',
    cpp_sources='torch::Tensor scalar_mul(torch::Tensor x, double s);',
    cuda_sources=cuda_code,
    functions=['scalar_mul'],
    extra_cuda_cflags=['-O3'],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, s: float) -> torch.Tensor:
        return _ext.scalar_mul(A.contiguous(), float(s))
