import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def conv_min_tanh2(x, w, b, y, H, W, OH, OW, IC: tl.constexpr, OC: tl.constexpr, K: tl.constexpr, BLK: tl.constexpr):
    n = tl.program_id(0)
    pix = tl.program_id(1) * BLK + tl.arange(0, BLK)
    inb = pix < OH * OW
    i = pix // OW
    j = pix % OW
    oc = tl.arange(0, OC)
    acc = tl.load(b + oc)[None, :] + tl.zeros((BLK, OC), tl.float32)
    for c in tl.static_range(IC):
        for u in tl.static_range(K):
            for v in tl.static_range(K):
                xv = tl.load(x + ((n * IC + c) * H + i + u) * W + j + v, mask=inb, other=0.0)
                wv = tl.load(w + oc * (IC * K * K) + (c * K + u) * K + v)
                acc += xv[:, None] * wv[None, :]
    r = tl.min(acc, axis=1)
    r = libdevice.tanh(libdevice.tanh(r))
    tl.store(y + n * OH * OW + pix, r, mask=inb)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        N, IC, H, W = x.shape
        OC, _, K, _ = self.conv.weight.shape
        OH, OW = H - K + 1, W - K + 1
        y = torch.empty((N, 1, OH, OW), device=x.device, dtype=x.dtype)
        BLK = 256
        conv_min_tanh2[(N, triton.cdiv(OH * OW, BLK))](x.contiguous(), self.conv.weight, self.conv.bias, y,
                                                       H, W, OH, OW, IC, OC, K, BLK, num_warps=8)
        return y
