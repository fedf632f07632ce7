import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_code = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void div_leaky_kernel(float* __restrict__ y, const int size, const int divisor, const float slope) {
    const float inv = 1 / divisor;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += blockDim.x * gridDim.x) {
        float v = y[i] * inv;
        y[i] = v > 0.0f ? v : v * slope;
    }
}

torch::Tensor div_leaky(torch::Tensor y, int64_t divisor, double slope) {
    const int size = y.numel();
    const int threads = 256;
    const int blocks = std::min((size + threads - 1) / threads, 4096);
    div_leaky_kernel<<<blocks, threads>>>(y.data_ptr<float>(), size, (int)divisor, (float)slope);
    return y;
}
"""

div_leaky_ext = load_inline(
    name="div_leaky_ext",
    cpp_sources="torch::Tensor div_leaky(torch::Tensor y, int64_t divisor, double slope);",
    cuda_sources=cuda_code,
    functions=["div_leaky"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divisor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.divisor = divisor

    def forward(self, x):
        return div_leaky_ext.div_leaky(self.conv(x).contiguous(), self.divisor, 0.01)
