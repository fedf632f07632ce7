import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// one warp per output: lanes stride over K with float4 loads, shuffle reduction
__global__ void dot_act(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                        const float* __restrict__ add, float* __restrict__ y, int M, int N, int K) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    int lane = threadIdx.x & 31;
    if (warp >= M * N) return;
    int m = warp / N, n = warp % N;
    const float4* xr = reinterpret_cast<const float4*>(x + m * K);
    const float4* wr = reinterpret_cast<const float4*>(w + n * K);
    float acc = 0.f;
    for (int k = lane; k < K / 4; k += 32) {
        float4 a = xr[k], c = wr[k];
        acc += a.x * c.x + a.y * c.y + a.z * c.z + a.w * c.w;
    }
    for (int o = 16; o; o >>= 1) acc += __shfl_down_sync(0xffffffff, acc, o);
    if (lane == 0) {
        float v = acc + b[n] + add[n];
        v = v / (1.f + expf(-v));
        v = tanhf(v);
        v = 0.5f * v * (1.f + erff(v * 0.70710678f));
        y[warp] = fminf(fmaxf(v, -1.f), 1.f);
    }
}

torch::Tensor linear_chain(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor add) {
    int M = x.size(0), K = x.size(1), N = w.size(0);
    auto y = torch::empty({M, N}, x.options());
    int warps_per_block = 8;
    int blocks = (M * N + warps_per_block - 1) / warps_per_block;
    dot_act<<<blocks, warps_per_block * 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), add.data_ptr<float>(), y.data_ptr<float>(), M, N, K);
    return y;
}
"""
chain = load_inline(name="linear_chain_ext", cuda_sources=cuda_src, functions=["linear_chain"],
                    cpp_sources="torch::Tensor linear_chain(torch::Tensor x, torch::Tensor w, torch::Tensor b, torch::Tensor add);")


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, add_value_shape):
        super(ModelNew, self).__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.add_value = nn.Parameter(torch.randn(add_value_shape))

    def forward(self, x):
        return chain.linear_chain(x.contiguous(), self.matmul.weight, self.matmul.bias, self.add_value)
