import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

kl_src = r"""
#include <torch/extension.h>
__global__ void kl_elem(const float* p, const float* t, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float b = t[i];
        o[i] = b > 0.f ? b * (__logf(b) - __logf(p[i])) : 0.f;
    }
}
torch::Tensor kl_pointwise(torch::Tensor p, torch::Tensor t) {
    auto o = torch::empty_like(p);
    int n = p.numel();
    kl_elem<<<(n + 511) / 512, 512>>>(p.data_ptr<float>(), t.data_ptr<float>(), o.data_ptr<float>(), n);
    return o;
}
"""
kl = load_inline(name="kl_pointwise_98", cpp_sources="torch::Tensor kl_pointwise(torch::Tensor p, torch::Tensor t);",
                 cuda_sources=kl_src, functions=["kl_pointwise"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        e = kl.kl_pointwise(predictions.contiguous(), targets.contiguous())
        return torch.sum(e) / predictions.size(0)
