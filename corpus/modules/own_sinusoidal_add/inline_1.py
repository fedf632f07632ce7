import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void add_waves(const float2* __restrict__ x, const int64_t* __restrict__ pos, const float* __restrict__ rate,
                          float2* __restrict__ y, int pairs, float root) {
    size_t row = blockIdx.x;
    float p = (float)pos[row];
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float s, c;
        sincosf(p * rate[i], &s, &c);
        float2 v = x[row * pairs + i];
        y[row * pairs + i] = make_float2(v.x * root + s, v.y * root + c);
    }
}

torch::Tensor waves(torch::Tensor x, torch::Tensor pos) {
    const int width = x.size(-1);
    auto rate = torch::exp(torch::arange(0, width, 2, x.options()) * (-std::log(10000.0) / width));
    auto y = torch::empty_like(x);
    add_waves<<<pos.numel(), 256>>>((const float2*)x.data_ptr<float>(), pos.data_ptr<int64_t>(), rate.data_ptr<float>(),
                                    (float2*)y.data_ptr<float>(), width / 2, std::sqrt((float)width));
    return y;
}
"""
w = load_inline(name="own_waves", cpp_sources="torch::Tensor waves(torch::Tensor x, torch::Tensor pos);", cuda_sources=cuda,
                functions=["waves"])


def custom_kernel(data):
    return w.waves(*data)
