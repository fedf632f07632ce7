import math
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def inner_kernel(x, u, n, k0, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(u + i, k0 * (v + 0.044715 * v * v * v), mask=i < n)


@triton.jit
def outer_kernel(x, th, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    t = tl.load(th + i, mask=i < n)
    tl.store(y + i, 0.5 * v * (1.0 + t), mask=i < n)


class ModelNew(nn.Module):
    """Polynomial and epilogue in Triton, tanh stays with torch (in place)."""

    def __init__(self):
        super().__init__()
        self.k0 = math.sqrt(2.0 / math.pi)

    def forward(self, x):
        n = x.numel()
        u = torch.empty_like(x)
        grid = (triton.cdiv(n, 512),)
        inner_kernel[grid](x, u, n, self.k0, BLOCK=512)
        u.tanh_()
        y = torch.empty_like(x)
        outer_kernel[grid](x, u, y, n, BLOCK=512)
        return y
