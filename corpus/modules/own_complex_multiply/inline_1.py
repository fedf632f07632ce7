import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void cmul(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 x = a[i], y = b[i];
    o[i] = make_float4(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x, x.z * y.z - x.w * y.w, x.z * y.w + x.w * y.z);
}

torch::Tensor complex_mul(torch::Tensor a, torch::Tensor b) {
    auto o = torch::empty(a.sizes(), a.options());
    int n = a.numel() / 4;
    cmul<<<(n + 255) / 256, 256>>>((const float4*)a.data_ptr<float>(), (const float4*)b.data_ptr<float>(),
                                   (float4*)o.data_ptr<float>(), n);
    return o;
}
"""
cm = load_inline(name="own_cmul4", cpp_sources="torch::Tensor complex_mul(torch::Tensor a, torch::Tensor b);",
                 cuda_sources=cuda, functions=["complex_mul"])


def custom_kernel(data):
    a, b = data
    return cm.complex_mul(a, b)
