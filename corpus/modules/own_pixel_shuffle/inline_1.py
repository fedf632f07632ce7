import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void shuffle2(const float* __restrict__ x, const float* __restrict__ bias, float2* __restrict__ y, int C,
                         int H, int W, int total) {
    // a thread gives two neighbours of an output row
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= total) return;
    int j = id % W, oi = (id / W) % (2 * H), plane = id / (W * 2 * H);
    int c = plane % C, n = plane / C, r = oi & 1, i = oi >> 1;
    int ch = c * 4 + r * 2;
    size_t at = (((size_t)n * 4 * C + ch) * H + i) * W + j;
    float a = x[at] + bias[ch], b = x[at + (size_t)H * W] + bias[ch + 1];
    y[id] = make_float2(__saturatef(a), __saturatef(b));
}

torch::Tensor shuffle(torch::Tensor x, torch::Tensor bias) {
    int N = x.size(0), C = x.size(1) / 4, H = x.size(2), W = x.size(3);
    auto y = x.new_empty({N, C, 2 * H, 2 * W});
    int total = y.numel() / 2;
    const int threads = 512;
    shuffle2<<<(total + threads - 1) / threads, threads>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
                                                         (float2*)y.data_ptr<float>(), C, H, W, total);
    return y;
}
"""
ps = load_inline(name="own_shuffle2", cpp_sources="torch::Tensor shuffle(torch::Tensor x, torch::Tensor bias);",
                 cuda_sources=cuda, functions=["shuffle"])


def custom_kernel(data):
    return ps.shuffle(*data)
