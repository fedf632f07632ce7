import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gn_stats_kernel(x_ptr, mu_ptr, rs_ptr, L, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < L
    v = tl.load(x_ptr + pid * L + o, mask=m, other=0.0)
    mu = tl.sum(v, axis=0) / L
    d = tl.where(m, v - mu, 0.0)
    tl.store(mu_ptr + pid, mu)
    tl.store(rs_ptr + pid, 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / L + eps))


@triton.jit
def tail_lse_kernel(x_ptr, mu_ptr, rs_ptr, w_ptr, b_ptr, out_ptr, S, C: tl.constexpr, CPG: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(1)
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    msk = s < S
    G: tl.constexpr = C // CPG
    mx = tl.full((BLOCK,), -float("inf"), tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for c in tl.static_range(C):
        x = tl.load(x_ptr + (n * C + c) * S + s, mask=msk, other=0.0)
        mu = tl.load(mu_ptr + n * G + c // CPG)
        rs = tl.load(rs_ptr + n * G + c // CPG)
        z = (x - mu) * rs * tl.load(w_ptr + c) + tl.load(b_ptr + c)
        t = 2.0 * tl.sigmoid(2.0 * z) - 1.0
        h = t * (t + 3.0) / 6.0            # |t| <= 1, so the hardswish never saturates
        r = x + h
        nm = tl.maximum(mx, r)
        acc = acc * tl.exp(mx - nm) + tl.exp(r - nm)
        mx = nm
    tl.store(out_ptr + n * S + s, mx + tl.log(acc), mask=msk)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(groups, out_channels, eps=eps)
        self.tanh = nn.Tanh()
        self.hard_swish = nn.Hardswish()

    def forward(self, x):
        y = self.conv(x)
        N, C, H, W = y.shape
        G = self.group_norm.num_groups
        S = H * W
        L = (C // G) * S
        mu = torch.empty(N * G, device=y.device)
        rs = torch.empty(N * G, device=y.device)
        gn_stats_kernel[(N * G,)](y, mu, rs, L, self.group_norm.eps, BLOCK=triton.next_power_of_2(L))
        out = torch.empty((N, 1, H, W), device=y.device, dtype=y.dtype)
        tail_lse_kernel[(triton.cdiv(S, 256), N)](y, mu, rs, self.group_norm.weight, self.group_norm.bias, out, S,
                                                 C=C, CPG=C // G, BLOCK=256, num_warps=4)
        return out
