import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def deconv1d_kernel(x, w, y, L, OL, S, P, DIL, IC: tl.constexpr, OC: tl.constexpr, K: tl.constexpr, BT: tl.constexpr):
    n = tl.program_id(1)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    ic = tl.arange(0, IC)
    oc = tl.arange(0, OC)
    acc = tl.zeros((OC, BT), tl.float32)
    for k in tl.static_range(K):
        u = t + P - k * DIL
        i = u // S
        ok = (u >= 0) & (u % S == 0) & (i < L)
        xv = tl.load(x + n * IC * L + ic[:, None] * L + i[None, :], mask=ok[None, :], other=0.0)
        wv = tl.load(w + ic[None, :] * (OC * K) + oc[:, None] * K + k)
        acc += tl.dot(wv, xv, allow_tf32=False)
    tl.store(y + n * OC * OL + oc[:, None] * OL + t[None, :], acc, mask=(t < OL)[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=bias)

    def forward(self, x):
        c = self.conv1d_transpose
        s, p, d = c.stride[0], c.padding[0], c.dilation[0]
        ic, oc, k = c.weight.shape
        n, _, l = x.shape
        ol = (l - 1) * s - 2 * p + d * (k - 1) + 1
        y = torch.empty(n, oc, ol, device=x.device, dtype=x.dtype)
        deconv1d_kernel[(triton.cdiv(ol, 32), n)](x, c.weight, y, l, ol, s, p, d, IC=ic, OC=oc, K=k, BT=32, num_warps=4)
        return y
