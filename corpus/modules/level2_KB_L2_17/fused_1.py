import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_in_div(x_ptr, w_ptr, y_ptr, H, W, OH, OW, eps, inv_div,
                IC: tl.constexpr, OC: tl.constexpr, KS: tl.constexpr, NPIX: tl.constexpr):
    """
    One program computes a complete output plane (n, oc): direct convolution, then statistics in registers.
    The convolution bias drops out of the normalisation.
    """
    pid = tl.program_id(0)
    n = pid // OC
    oc = pid % OC
    p = tl.arange(0, NPIX)
    ok = p < OH * OW
    oh = p // OW
    ow = p % OW
    acc = tl.zeros((NPIX,), dtype=tl.float32)
    for ic in tl.static_range(IC):
        for kh in tl.static_range(KS):
            for kw in tl.static_range(KS):
                wv = tl.load(w_ptr + ((oc * IC + ic) * KS + kh) * KS + kw)
                xv = tl.load(x_ptr + ((n * IC + ic) * H + oh + kh) * W + ow + kw, mask=ok, other=0.0)
                acc += wv * xv
    cnt = OH * OW
    mu = tl.sum(tl.where(ok, acc, 0.0), axis=0) / cnt
    d = tl.where(ok, acc - mu, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, axis=0) / cnt + eps)
    tl.store(y_ptr + pid * cnt + p, d * rstd * inv_div, mask=ok)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        N, IC, H, W = x.shape
        w = self.conv.weight
        OC, KS = w.shape[0], w.shape[2]
        OH, OW = H - KS + 1, W - KS + 1
        y = torch.empty((N, OC, OH, OW), device=x.device, dtype=x.dtype)
        conv_in_div[(N * OC,)](x.contiguous(), w, y, H, W, OH, OW, self.instance_norm.eps, 1.0 / self.divide_by,
                               IC=IC, OC=OC, KS=KS, NPIX=triton.next_power_of_2(OH * OW), num_warps=8)
        return y
