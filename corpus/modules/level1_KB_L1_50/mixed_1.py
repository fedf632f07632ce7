import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_prod(x_ptr, part_ptr, R, C, N_PART, ROWS: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(0)
    part = tl.program_id(1)
    c = tl.arange(0, BC)
    acc = tl.full((BC,), 1.0, tl.float32)
    for i in range(ROWS):
        r = part * ROWS + i
        acc = acc * tl.load(x_ptr + (b * R + r) * C + c, mask=(c < C) & (r < R), other=1.0)
    tl.store(part_ptr + (b * N_PART + part) * C + c, acc, mask=c < C)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x.movedim(self.dim, 1).contiguous()
        B, R, C = x.shape
        ROWS = 16
        parts = triton.cdiv(R, ROWS)
        tmp = torch.empty(B, parts, C, device=x.device, dtype=x.dtype)
        partial_prod[(B, parts)](x, tmp, R, C, parts, ROWS=ROWS, BC=triton.next_power_of_2(C), num_warps=4)
        return tmp.prod(dim=1)
