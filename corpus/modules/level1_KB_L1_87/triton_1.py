import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pointwise_conv(x, w, y, HW, OC, C: tl.constexpr, BP: tl.constexpr, BOC: tl.constexpr):
    n = tl.program_id(2)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    oc = tl.program_id(1) * BOC + tl.arange(0, BOC)
    pm = p < HW
    acc = tl.zeros((BOC, BP), tl.float32)
    for c in tl.static_range(C):
        xv = tl.load(x + (n * C + c) * HW + p, mask=pm, other=0.0)
        wv = tl.load(w + oc * C + c, mask=oc < OC, other=0.0)
        acc += wv[:, None] * xv[None, :]
    tl.store(y + (n * OC + oc)[:, None] * HW + p[None, :], acc, mask=(oc < OC)[:, None] & pm[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, bias: bool = False):
        super().__init__()
        self.conv1d = nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=1, padding=0, bias=bias)

    def forward(self, x):
        n, c, h, w = x.shape
        oc = self.conv1d.out_channels
        y = torch.empty((n, oc, h, w), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(h * w, 512), triton.cdiv(oc, 16), n)
        pointwise_conv[grid](x, self.conv1d.weight, y, h * w, oc, C=c, BP=512, BOC=16, num_warps=8)
        if self.conv1d.bias is not None:
            y += self.conv1d.bias[:, None, None]
        return y
