import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _scale_(x, y, s, N, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    k = tl.load(s)
    tl.store(y + i, tl.load(x + i, mask=i < N) * tl.rsqrt(k), mask=i < N)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        flat = x.view(-1)
        sq = torch.dot(flat, flat)          # cuBLAS does the whole reduction in one pass
        y = torch.empty_like(x)
        n = flat.numel()
        _scale_[(triton.cdiv(n, 4096),)](flat, y, sq, n, B=4096, num_warps=8)
        return y
