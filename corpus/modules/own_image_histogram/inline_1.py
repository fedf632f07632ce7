import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void hist(const unsigned char* __restrict__ x, int* __restrict__ out, int pixels) {
    __shared__ int bins[8][256];
    int warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < 8 * 256; i += blockDim.x) (&bins[0][0])[i] = 0;
    __syncthreads();
    const uchar4* p = reinterpret_cast<const uchar4*>(x + (size_t)blockIdx.y * pixels);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels / 4; i += gridDim.x * blockDim.x) {
        uchar4 v = p[i];
        atomicAdd(&bins[warp][v.x], 1);
        atomicAdd(&bins[warp][v.y], 1);
        atomicAdd(&bins[warp][v.z], 1);
        atomicAdd(&bins[warp][v.w], 1);
    }
    __syncthreads();
    int sum = 0;
    for (int w = 0; w < 8; ++w) sum += bins[w][threadIdx.x];
    atomicAdd(&out[blockIdx.y * 256 + threadIdx.x], sum);
}

torch::Tensor histogram(torch::Tensor x) {
    int count = x.size(0), pixels = x.size(1) * x.size(2);
    TORCH_CHECK(pixels % 4 == 0 && x.is_contiguous());
    auto out = torch::zeros({count, 256}, x.options().dtype(torch::kInt32));
    hist<<<dim3(16, count), 256>>>(x.data_ptr<uint8_t>(), out.data_ptr<int>(), pixels);
    return out;
}
"""
mod = load_inline(name="own_hist_warps", cpp_sources="torch::Tensor histogram(torch::Tensor x);", cuda_sources=cuda,
                  functions=["histogram"])


def custom_kernel(data):
    return mod.histogram(data[0])
