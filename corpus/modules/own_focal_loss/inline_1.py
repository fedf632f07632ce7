import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void focal(const float* __restrict__ x, const float* __restrict__ t, double* __restrict__ out, long n) {
    double acc = 0.0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        float v = x[i], y = t[i];
        float p = 1.f / (1.f + expf(-v));
        float bce = fmaxf(v, 0.f) - v * y + log1pf(expf(-fabsf(v)));
        float q = y > 0.5f ? 1.f - p : p;
        acc += (y > 0.5f ? 0.25f : 0.75f) * q * q * bce;
    }
    for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffff, acc, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(out, acc);
}

torch::Tensor focal_loss(torch::Tensor x, torch::Tensor t) {
    auto sum = torch::zeros({}, x.options().dtype(torch::kDouble));
    long n = x.numel();
    focal<<<1056, 256>>>(x.data_ptr<float>(), t.data_ptr<float>(), sum.data_ptr<double>(), n);
    return sum.div((double)n).to(torch::kFloat32);
}
"""
fl = load_inline(name="own_focal", cpp_sources="torch::Tensor focal_loss(torch::Tensor x, torch::Tensor t);", cuda_sources=cuda,
                 functions=["focal_loss"])


def custom_kernel(data):
    return fl.focal_loss(data[0], data[1])
