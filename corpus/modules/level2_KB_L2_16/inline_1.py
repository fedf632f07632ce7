import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

kernel = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

template <typename scalar_t>
__global__ void epilogue(const scalar_t* __restrict__ in, scalar_t* __restrict__ out, size_t n, scalar_t add, scalar_t scale) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)blockDim.x * gridDim.x) {
        scalar_t x = in[i];
        scalar_t sp = x > scalar_t(20) ? x : log1p(exp(x));
        scalar_t v = x * tanh(sp) + add;
        v = v < scalar_t(-1) ? scalar_t(-1) : (v > scalar_t(1) ? scalar_t(1) : v);
        out[i] = v * scale;
    }
}

torch::Tensor epilogue_cuda(torch::Tensor in, double add, double scale) {
    auto out = torch::empty_like(in);
    size_t n = in.numel();
    auto stream = c10::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "epilogue", [&] {
        epilogue<scalar_t><<<2048, 128, 0, stream>>>(in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n,
                                                     (scalar_t)add, (scalar_t)scale);
    });
    return out;
}
"""
ep = load_inline(name="l2_16_epilogue", cpp_sources="torch::Tensor epilogue_cuda(torch::Tensor in, double add, double scale);",
                 cuda_sources=kernel, functions=["epilogue_cuda"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, add_value, scale):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride, padding, output_padding)
        self.add_value = add_value
        self.scale = scale

    def forward(self, x):
        return ep.epilogue_cuda(self.conv_transpose(x), self.add_value, self.scale)
