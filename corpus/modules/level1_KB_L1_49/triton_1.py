import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, y_ptr, R, C, R_POW2: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    r = tl.arange(0, R_POW2)
    mask = (r[:, None] < R) & (c[None, :] < C)
    tile = tl.load(x_ptr + (b * R + r[:, None]) * C + c[None, :], mask=mask, other=-float('inf'))
    tl.store(y_ptr + b * C + c, tl.max(tile, axis=0), mask=c < C)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        d = self.dim % x.dim()
        outer = math_prod(x.shape[:d])
        R = x.shape[d]
        inner = math_prod(x.shape[d + 1:])
        y = torch.empty(x.shape[:d] + x.shape[d + 1:], device=x.device, dtype=x.dtype)
        BC = 16
        max_kernel[(outer, triton.cdiv(inner, BC))](x, y, R, inner, R_POW2=triton.next_power_of_2(R), BC=BC, num_warps=4)
        return y


def math_prod(seq):
    out = 1
    for s in seq:
        out *= s
    return out
