import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv3d_kernel(X, Wt, Y, D, H, W, OD, OH, OW, KTOT, C: tl.constexpr, OC: tl.constexpr,
                  KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
                  BP: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(1)      # (n, od, oh)
    oh = row % OH
    od = (row // OH) % OD
    n = row // (OH * OD)
    ow = tl.program_id(0) * BP + tl.arange(0, BP)
    oc = tl.arange(0, OC)
    acc = tl.zeros((OC, BP), tl.float32)
    xb = X + n.to(tl.int64) * C * D * H * W + od * H * W + oh * W
    for k0 in range(0, KTOT, BK):
        k = k0 + tl.arange(0, BK)
        c = k // (KD * KH * KW)
        r = k % (KD * KH * KW)
        tap = c * D * H * W + (r // (KH * KW)) * H * W + ((r // KW) % KH) * W + r % KW
        xt = tl.load(xb + tap[:, None] + ow[None, :], mask=(k < KTOT)[:, None] & (ow < OW)[None, :], other=0.0)
        wt = tl.load(Wt + oc[:, None] * KTOT + k[None, :], mask=(k < KTOT)[None, :], other=0.0)
        acc += tl.dot(wt, xt, allow_tf32=True)
    yb = Y + n.to(tl.int64) * OC * OD * OH * OW
    offs = oc[:, None].to(tl.int64) * (OD * OH * OW) + (od * OH + oh) * OW + ow[None, :]
    tl.store(yb + offs, acc, mask=(ow < OW)[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple = (1, 1, 1), padding: tuple = (0, 0, 0), dilation: tuple = (1, 1, 1), groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv3d.weight
        N, C, D, H, W = x.shape
        OC, _, KD, KH, KW = w.shape
        OD, OH, OW = D - KD + 1, H - KH + 1, W - KW + 1
        y = torch.empty((N, OC, OD, OH, OW), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(OW, 128), N * OD * OH)
        if grid[1] > 65535:
            raise RuntimeError("too many rows")
        conv3d_kernel[grid](x, w, y, D, H, W, OD, OH, OW, C * KD * KH * KW, C, OC, KD, KH, KW, BP=128, BK=32, num_warps=8, num_stages=3)
        return y
