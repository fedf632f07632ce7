import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gn_min_kernel(x_ptr, w_ptr, b_ptr, out_ptr, eps, G: tl.constexpr, GS: tl.constexpr):
    row = tl.program_id(0)
    g = tl.arange(0, G)
    i = tl.arange(0, GS)
    idx = g[:, None] * GS + i[None, :]
    x = tl.load(x_ptr + row * (G * GS) + idx)
    mean = tl.sum(x, axis=1) / GS
    xc = x - mean[:, None]
    var = tl.sum(xc * xc, axis=1) / GS
    y = xc / tl.sqrt(var + eps)[:, None] * tl.load(w_ptr + idx) + tl.load(b_ptr + idx)
    tl.store(out_ptr + row, tl.min(tl.min(y, axis=1), axis=0))


@triton.jit
def outer_add_kernel(m_ptr, bias_ptr, out_ptr, B, BLOCK: tl.constexpr):
    # out[c, b] = bias[c] + min[b]
    c = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    msk = o < B
    v = tl.load(m_ptr + o, mask=msk) + tl.load(bias_ptr + c)
    tl.store(out_ptr + c * B + o, v, mask=msk)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        h = self.gemm(x)
        B, C = h.shape
        G = self.group_norm.num_groups
        mins = torch.empty(B, device=h.device, dtype=h.dtype)
        gn_min_kernel[(B,)](h, self.group_norm.weight, self.group_norm.bias, mins, self.group_norm.eps, G=G, GS=C // G)
        out = torch.empty((1, C, B, 1), device=h.device, dtype=h.dtype)
        outer_add_kernel[(C,)](mins, self.bias, out, B, BLOCK=triton.next_power_of_2(B), num_warps=1)
        return out
