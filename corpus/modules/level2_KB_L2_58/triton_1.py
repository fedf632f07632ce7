import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lse_hs_kernel(x_ptr, min_bias_ptr, out_ptr, C, S, total, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < total
    b = offs // S
    s = offs % S
    base = x_ptr + b * C * S + s
    m = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    d = tl.zeros((BLOCK,), dtype=tl.float32)
    # online logsumexp over channels
    for c in range(0, C):
        v = tl.load(base + c * S, mask=mask, other=0.0)
        mn = tl.maximum(m, v)
        d = d * tl.exp(m - mn) + tl.exp(v - mn)
        m = mn
    l = m + tl.log(d)
    l = l * tl.sigmoid(l + 3.0) / 6.0
    # max over channels of clamp(l - bias_c) = clamp(l - min(bias))
    l = l - tl.load(min_bias_ptr)
    l = tl.minimum(tl.maximum(l, -1.0), 1.0)
    tl.store(out_ptr + offs, l, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = self.conv_transpose(x)
        B, C, D, H, W = y.shape
        out = torch.empty((B, 1, D, H, W), device=y.device, dtype=y.dtype)
        S = D * H * W
        total = B * S
        mb = self.bias.min()
        lse_hs_kernel[(triton.cdiv(total, 512),)](y, mb, out, C, S, total, BLOCK=512, num_warps=4)
        return out
