import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _mul(a, b):
    return a * b


@triton.jit
def prod_kernel(x_ptr, y_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    r = tl.arange(0, BR)
    m = (r[:, None] < R) & (c[None, :] < C)
    v = tl.load(x_ptr + b * R * C + r[:, None] * C + c[None, :], mask=m, other=1.0)
    p = tl.reduce(v, 0, _mul)
    tl.store(y_ptr + b * C + c, p, mask=c < C)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.dim != 1 or x.dim() != 3:
            return torch.prod(x, dim=self.dim)
        B, R, C = x.shape
        y = torch.empty((B, C), device=x.device, dtype=x.dtype)
        prod_kernel[(B, triton.cdiv(C, 32))](x, y, R, C, BR=triton.next_power_of_2(R), BC=32, num_warps=8)
        return y
