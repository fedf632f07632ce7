import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sumsq_rows(x_ptr, s_ptr, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + r * n + o, mask=o < n, other=0.0)
    tl.atomic_add(s_ptr + r, tl.sum(v * v, axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, n = x.shape
        s = x.new_zeros(rows, 1)
        sumsq_rows[(rows, triton.cdiv(n, 1024))](x, s, n, BLOCK=1024, num_warps=4)
        return x / s.sqrt_()
