import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <tuple>

__global__ void scale128(const float4* __restrict__ x, __half2* __restrict__ y, float* __restrict__ s, int blocks) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (warp >= blocks) return;
    float4 v = x[(size_t)warp * 32 + lane];
    float top = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    #pragma unroll
    for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    float scale = fmaxf(top, 1e-12f) / 448.f;
    float inv = 1.f / scale;
    auto cut = [&](float f) { return fminf(fmaxf(f * inv, -448.f), 448.f); };
    y[(size_t)warp * 64 + lane * 2] = __floats2half2_rn(cut(v.x), cut(v.y));
    y[(size_t)warp * 64 + lane * 2 + 1] = __floats2half2_rn(cut(v.z), cut(v.w));
    if (lane == 0) s[warp] = scale;
}

std::tuple<torch::Tensor, torch::Tensor> scale_blocks(torch::Tensor x) {
    TORCH_CHECK(x.size(1) % 128 == 0, "rows of whole blocks");
    auto y = torch::empty(x.sizes(), x.options().dtype(torch::kHalf));
    auto s = torch::empty({x.size(0), x.size(1) / 128}, x.options());
    int blocks = s.numel();
    scale128<<<(blocks + 7) / 8, 256>>>((const float4*)x.data_ptr<float>(), (__half2*)y.data_ptr<at::Half>(),
                                        s.data_ptr<float>(), blocks);
    return std::make_tuple(y, s);
}
"""
ext = load_inline("own_scale128", "std::tuple<torch::Tensor, torch::Tensor> scale_blocks(torch::Tensor x);", cuda,
                  functions=["scale_blocks"])


def custom_kernel(data):
    return ext.scale_blocks(data[0])
