import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// block = (image, out channel). Input planes staged in shared memory, result reduced in-block.
__global__ void conv_gelu_gap(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b,
                              float* __restrict__ out, int CI, int H, int W, int CO, int K) {
    extern __shared__ float tile[];
    __shared__ float partial[8];
    int n = blockIdx.x, co = blockIdx.y;
    int plane = CI * H * W;
    for (int i = threadIdx.x; i < plane; i += blockDim.x) tile[i] = x[n * plane + i];
    float* ws = tile + plane;
    int wn = CI * K * K;
    for (int i = threadIdx.x; i < wn; i += blockDim.x) ws[i] = w[co * wn + i];
    __syncthreads();
    int OH = H - K + 1, OW = W - K + 1;
    float bias = b[co], sum = 0.f;
    for (int p = threadIdx.x; p < OH * OW; p += blockDim.x) {
        int oh = p / OW, ow = p % OW;
        float a = bias;
        for (int ci = 0; ci < CI; ++ci)
            for (int i = 0; i < K; ++i)
                for (int j = 0; j < K; ++j)
                    a = fmaf(tile[(ci * H + oh + i) * W + ow + j], ws[(ci * K + i) * K + j], a);
        sum += 0.5f * a * (1.f + erff(a * 0.70710678f));
    }
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffff, sum, o);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0.f;
        for (int i = 0; i < blockDim.x / 32; ++i) t += partial[i];
        out[n * CO + co] = t / (H * W);
    }
}

torch::Tensor conv_gelu_gap_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int N = x.size(0), CI = x.size(1), H = x.size(2), W = x.size(3), CO = w.size(0), K = w.size(2);
    auto out = torch::empty({N, CO}, x.options());
    size_t sm = (CI * H * W + CI * K * K) * sizeof(float);
    conv_gelu_gap<<<dim3(N, CO), 256, sm>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                            out.data_ptr<float>(), CI, H, W, CO, K);
    return out;
}
"""
op = load_inline(name="conv_gelu_gap_op", functions=["conv_gelu_gap_cuda"], cuda_sources=cuda_src,
                 cpp_sources="torch::Tensor conv_gelu_gap_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b);")


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return op.conv_gelu_gap_cuda(x.contiguous(), self.conv.weight.contiguous(), self.conv.bias)
