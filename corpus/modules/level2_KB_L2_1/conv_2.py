# Direct convolution: each program owns a strip of output pixels and all output channels,
# so that every loaded pixel is used OC times from registers.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _k(X, Wt, CB, B, Y, H, W, OH, OW,
       IC: tl.constexpr, OC: tl.constexpr, KS: tl.constexpr, BP: tl.constexpr):
    n = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    ok = p < OH * OW
    r = p // OW
    s = p % OW
    oc = tl.arange(0, OC)
    acc = tl.zeros((OC, BP), dtype=tl.float32)
    for ic in tl.static_range(IC):
        for i in tl.static_range(KS):
            for j in tl.static_range(KS):
                px = tl.load(X + ((n * IC + ic) * H + r + i) * W + s + j, mask=ok, other=0.0)
                wv = tl.load(Wt + ((oc * IC + ic) * KS + i) * KS + j)
                acc += wv[:, None] * px[None, :]
    acc += tl.load(CB + oc)[:, None]
    acc = tl.where(acc > 0, acc, 0.0) + tl.load(B + oc)[:, None]
    tl.store(Y + (n * OC + oc[:, None]) * (OH * OW) + p[None, :], acc, mask=ok[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        n, ic, h, w = x.shape
        oc, _, ks, _ = self.conv.weight.shape
        oh, ow = h - ks + 1, w - ks + 1
        y = torch.empty((n, oc, oh, ow), device=x.device, dtype=x.dtype)
        BP = 128
        _k[(triton.cdiv(oh * ow, BP), n)](x, self.conv.weight, self.conv.bias, self.bias, y,
                                          h, w, oh, ow, ic, oc, ks, BP, num_warps=4)
        return y
