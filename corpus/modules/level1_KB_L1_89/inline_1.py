import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

scan_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// block per row; warp scans + carry over chunks of blockDim.x
__global__ void scan_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float warp_tot[32];
    __shared__ float carry_s;
    const float* xr = x + (size_t)blockIdx.x * n;
    float* yr = y + (size_t)blockIdx.x * n;
    int lane = threadIdx.x & 31, wid = threadIdx.x >> 5, nw = blockDim.x >> 5;
    float carry = 0.f;
    for (int base = 0; base < n; base += blockDim.x) {
        int i = base + threadIdx.x;
        float v = i < n ? xr[i] : 0.f;
        #pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
            float t = __shfl_up_sync(0xffffffffu, v, d);
            if (lane >= d) v += t;
        }
        if (lane == 31) warp_tot[wid] = v;
        __syncthreads();
        if (wid == 0) {
            float t = lane < nw ? warp_tot[lane] : 0.f;
            #pragma unroll
            for (int d = 1; d < 32; d <<= 1) {
                float u = __shfl_up_sync(0xffffffffu, t, d);
                if (lane >= d) t += u;
            }
            warp_tot[lane] = t;
            if (lane == nw - 1) carry_s = t;
        }
        __syncthreads();
        float pre = carry + (wid > 0 ? warp_tot[wid - 1] : 0.f);
        if (i < n) yr[i] = v + pre;
        carry += carry_s;
        __syncthreads();
    }
}

torch::Tensor cumsum_rows(torch::Tensor x) {
    auto y = torch::empty_like(x);
    scan_rows<<<x.size(0), 512>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""
_scan = load_inline(name="scan_rows_89", cpp_sources="torch::Tensor cumsum_rows(torch::Tensor x);",
                    cuda_sources=scan_src, functions=["cumsum_rows"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        if x.dim() != 2 or self.dim not in (1, -1):
            return torch.cumsum(x, self.dim)
        return _scan.cumsum_rows(x.contiguous())
