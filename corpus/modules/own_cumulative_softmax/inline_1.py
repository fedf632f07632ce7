import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

// a warp walks along a row, 32 values at a time
__global__ void walk(const float* __restrict__ x, float* __restrict__ y, int rows, int width) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float M = -1e30f, S = 0.f;
    for (int j = 0; j < width; j += 32) {
        int c = j + lane;
        float v = c < width ? x[(size_t)row * width + c] : -1e30f;
        float m = v, s = c < width ? 1.f : 0.f;
        for (int o = 1; o < 32; o <<= 1) {
            float m2 = __shfl_up_sync(0xffffffffu, m, o), s2 = __shfl_up_sync(0xffffffffu, s, o);
            if (lane >= o) {
                float t = fmaxf(m, m2);
                s = s * expf(m - t) + s2 * expf(m2 - t);
                m = t;
            }
        }
        float t = fmaxf(m, M);
        s = s * expf(m - t) + S * expf(M - t);
        m = t;
        if (c < width) y[(size_t)row * width + c] = expf(v - m) / s;
        M = __shfl_sync(0xffffffffu, m, 31);
        S = __shfl_sync(0xffffffffu, s, 31);
    }
}

torch::Tensor prefix_softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0);
    walk<<<(rows + 3) / 4, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, (int)x.size(1));
    return y;
}
"""
ext = load_inline(name="own_prefix_softmax", cpp_sources="torch::Tensor prefix_softmax(torch::Tensor x);", cuda_sources=cuda,
                  functions=["prefix_softmax"])


def custom_kernel(data):
    return ext.prefix_softmax(data[0])
