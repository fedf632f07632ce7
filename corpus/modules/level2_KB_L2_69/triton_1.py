import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_igemm(x_ptr, w_ptr, y_ptr, P, H, W, OH, OW,
               CI: tl.constexpr, CO: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
               KPAD: tl.constexpr, BP: tl.constexpr):
    """implicit GEMM: rows are output pixels over the batch, columns are output channels, K = CI*KH*KW padded"""
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    pm = p < P
    n = p // (OH * OW)
    oh = (p // OW) % OH
    ow = p % OW
    k = tl.arange(0, KPAD)
    km = k < CI * KH * KW
    ci = k // (KH * KW)
    kh = (k // KW) % KH
    kw = k % KW
    a_ptrs = x_ptr + ((n[:, None] * CI + ci[None, :]) * H + oh[:, None] + kh[None, :]) * W + ow[:, None] + kw[None, :]
    a = tl.load(a_ptrs, mask=pm[:, None] & km[None, :], other=0.0)
    co = tl.arange(0, CO)
    w = tl.load(w_ptr + co[None, :] * (CI * KH * KW) + k[:, None], mask=km[:, None], other=0.0)
    acc = tl.dot(a, w, input_precision="ieee")
    acc = acc * tl.minimum(tl.maximum(acc + 3.0, 0.0), 6.0) * 0.16666666666
    acc = tl.maximum(acc, 0.0)
    y_ptrs = y_ptr + (n[:, None] * CO + co[None, :]) * (OH * OW) + (oh * OW + ow)[:, None]
    tl.store(y_ptrs, acc, mask=pm[:, None])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = x.contiguous()
        N, CI, H, W = x.shape
        CO, _, KH, KW = self.conv.weight.shape
        OH, OW = H - KH + 1, W - KW + 1
        y = torch.empty((N, CO, OH, OW), device=x.device, dtype=x.dtype)
        P = N * OH * OW
        conv_igemm[(triton.cdiv(P, 128),)](x, self.conv.weight, y, P, H, W, OH, OW,
                                           CI, CO, KH, KW, KPAD=32, BP=128, num_warps=4)
        return y
