import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def instance_stats(x_ptr, mult_ptr, a_ptr, b_ptr, S, C, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    c = pid % C
    mu_c = tl.load(mult_ptr + c)
    tot = tl.zeros([BLOCK], tl.float32)
    for i in range(0, S, BLOCK):
        o = i + tl.arange(0, BLOCK)
        tot += tl.load(x_ptr + pid * S + o, mask=o < S, other=0.0)
    mean = tl.sum(tot, axis=0) / S
    sq = tl.zeros([BLOCK], tl.float32)
    for i in range(0, S, BLOCK):
        o = i + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + pid * S + o, mask=o < S, other=0.0) - mean
        sq += d * d
    var = tl.sum(sq, axis=0) / S
    # normalised(m * x) = m (x - mean) / sqrt(m^2 var + eps)
    r = mu_c / tl.sqrt(mu_c * mu_c * var + eps)
    tl.store(a_ptr + pid, r)
    tl.store(b_ptr + pid, -mean * r)


@triton.jit
def norm_clamp_max(x_ptr, mult_ptr, a_ptr, b_ptr, out_ptr, S, lo, hi, C: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(1)
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = s < S
    best = tl.full((BLOCK,), -3.4e38, tl.float32)
    for c in range(C):
        p = n * C + c
        v = tl.load(x_ptr + p * S + s, mask=m, other=0.0) * tl.load(a_ptr + p) + tl.load(b_ptr + p)
        v = tl.minimum(tl.maximum(v, lo), hi) * tl.load(mult_ptr + c)
        best = tl.maximum(best, v)
    tl.store(out_ptr + n * S + s, best, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, multiplier_shape, clamp_min, clamp_max):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.instance_norm = nn.InstanceNorm3d(out_channels)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        y = self.conv(x)
        N, C, D, H, W = y.shape
        S = D * H * W
        a = torch.empty(N * C, device=y.device)
        b = torch.empty(N * C, device=y.device)
        instance_stats[(N * C,)](y, self.multiplier, a, b, S, C, self.instance_norm.eps, BLOCK=1024)
        out = torch.empty((N, D, H, W), device=y.device, dtype=y.dtype)
        norm_clamp_max[(triton.cdiv(S, 1024), N)](y, self.multiplier, a, b, out, S, self.clamp_min, self.clamp_max,
                                                 C=C, BLOCK=1024)
        return out
