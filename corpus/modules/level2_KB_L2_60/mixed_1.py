import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def swish_inplace(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(p + i, mask=m)
    tl.store(p + i, v * tl.sigmoid(v), mask=m)


class ModelNew(nn.Module):
    """ConvTranspose3d (cuDNN) -> swish (Triton, in place) -> GroupNorm (ATen) -> hardswish in place."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, groups, eps, bias=True):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias)
        self.group_norm = nn.GroupNorm(num_groups=groups, num_channels=out_channels, eps=eps)

    def forward(self, x):
        y = self.conv_transpose(x)
        n = y.numel()
        swish_inplace[(triton.cdiv(n, 2048),)](y, n, BLOCK=2048, num_warps=8)
        y = self.group_norm(y)
        return torch.nn.functional.hardswish(y, inplace=True)
