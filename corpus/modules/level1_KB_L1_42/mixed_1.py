import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def max4(p_ptr, o_ptr, total, OH, OW, HP, WP, S: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < total
    ow = i % OW
    oh = (i // OW) % OH
    nc = i // (OH * OW)
    base = p_ptr + (nc * HP + oh * S) * WP + ow * S
    a = tl.load(base, mask=m)
    b = tl.load(base + D, mask=m)
    c = tl.load(base + D * WP, mask=m)
    d = tl.load(base + D * WP + D, mask=m)
    tl.store(o_ptr + i, tl.maximum(tl.maximum(a, b), tl.maximum(c, d)), mask=m)


class ModelNew(nn.Module):
    """Padding with -inf by torch, so the 2x2 pooling kernel itself has no border cases."""

    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int):
        super().__init__()
        assert kernel_size == 2
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def forward(self, x):
        p, s, d = self.padding, self.stride, self.dilation
        xp = F.pad(x, (p, p, p, p), value=float("-inf"))
        n, c, hp, wp = xp.shape
        oh = (hp - d - 1) // s + 1
        ow = (wp - d - 1) // s + 1
        out = torch.empty(n, c, oh, ow, device=x.device, dtype=x.dtype)
        t = out.numel()
        max4[(triton.cdiv(t, 1024),)](xp, out, t, oh, ow, hp, wp, S=s, D=d, BLOCK=1024)
        return out
