import torch
from torch.utils.cpp_extension import load_inline

code = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

// one pass: copies a row of the cache, or the new row that replaces it
__global__ void update(const uint4* __restrict__ cache, const uint4* __restrict__ fresh, const int64_t* __restrict__ pos,
                       uint4* __restrict__ out, int heads, int room, int fresh_count, int vecs) {
    const int bh = blockIdx.y;
    const int64_t start = pos[(bh / heads) * fresh_count];
    const int64_t total = (int64_t)room * vecs;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < total; i += (int64_t)gridDim.x * blockDim.x) {
        int64_t t = i / vecs - start;
        bool is_new = t >= 0 && t < fresh_count;
        out[bh * total + i] = is_new ? fresh[((int64_t)bh * fresh_count + t) * vecs + i % vecs] : cache[bh * total + i];
    }
}

torch::Tensor kv_update(torch::Tensor cache, torch::Tensor fresh, torch::Tensor pos) {
    auto out = torch::empty_like(cache);
    int B = cache.size(0), H = cache.size(1), room = cache.size(2), D = cache.size(3);
    int vecs = D * cache.element_size() / 16;
    dim3 grid(64, B * H);
    update<<<grid, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const uint4*>(cache.data_ptr()), reinterpret_cast<const uint4*>(fresh.data_ptr()),
        pos.data_ptr<int64_t>(), reinterpret_cast<uint4*>(out.data_ptr()), H, room, (int)fresh.size(2), vecs);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""
kv = load_inline(name="own_kv_update", cpp_sources="torch::Tensor kv_update(torch::Tensor, torch::Tensor, torch::Tensor);",
                 cuda_sources=code, functions=["kv_update"])


def custom_kernel(data):
    cache_k, cache_v, k, v, positions = data
    return kv.kv_update(cache_k, k, positions), kv.kv_update(cache_v, v, positions)
