import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lrelu_k(p, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(p + o, mask=o < n)
    tl.store(p + o, tl.where(v > 0, v, v * 0.2), mask=o < n)


@triton.jit
def add_k(p, t, n, S, C, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(p + o, mask=o < n)
    tl.store(p + o, v + tl.load(t + (o // S) % C, mask=o < n), mask=o < n)


@triton.jit
def clamp_k(p, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(p + o, mask=o < n)
    tl.store(p + o, tl.clamp(v, -1.0, 1.0), mask=o < n)


@triton.jit
def gelu_k(p, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(p + o, mask=o < n)
    tl.store(p + o, v * 0.5 * (1.0 + tl.erf(v * 0.70710678)), mask=o < n)


class ModelNew(nn.Module):
    """Each elementwise operation has its own kernel."""

    def __init__(self, in_channels, out_channels, kernel_size, sum_tensor_shape):
        super().__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.sum_tensor = nn.Parameter(torch.randn(sum_tensor_shape))

    def forward(self, x):
        y = self.conv(x)
        n = y.numel()
        C = y.shape[1]
        S = y.shape[2] * y.shape[3] * y.shape[4]
        B = 128
        grid = (triton.cdiv(n, B),)
        lrelu_k[grid](y, n, B=B)
        add_k[grid](y, self.sum_tensor, n, S, C, B=B)
        clamp_k[grid](y, n, B=B)
        gelu_k[grid](y, n, B=B)
        return y
