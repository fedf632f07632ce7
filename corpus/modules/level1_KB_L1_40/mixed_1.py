import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_norm(x, y, mean, rstd, w, b, D, BLOCK: tl.constexpr):
    r = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < D
    mu = tl.load(mean + r)
    rs = tl.load(rstd + r)
    v = tl.load(x + r * D + i, mask=m, other=0.)
    v = (v - mu) * rs
    v = v * tl.load(w + i, mask=m, other=0.) + tl.load(b + i, mask=m, other=0.)
    tl.store(y + r * D + i, v, mask=m)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        dims = tuple(range(x.dim() - len(self.ln.normalized_shape), x.dim()))
        var, mean = torch.var_mean(x, dim=dims, correction=0)
        rstd = torch.rsqrt(var + self.ln.eps)
        D = self.ln.weight.numel()
        y = torch.empty_like(x)
        affine_norm[(triton.cdiv(D, 2048), mean.numel())](x, y, mean, rstd, self.ln.weight, self.ln.bias, D,
                                                          BLOCK=2048, num_warps=4)
        return y
