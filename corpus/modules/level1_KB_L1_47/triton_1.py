import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_dim1(x_ptr, out_ptr, R, C, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    b = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros((BLOCK_R, BLOCK_C), dtype=tl.float32)
    for r0 in range(0, R, BLOCK_R):
        rows = r0 + tl.arange(0, BLOCK_R)
        m = (rows[:, None] < R) & (cols[None, :] < C)
        acc += tl.load(x_ptr + b * R * C + rows[:, None] * C + cols[None, :], mask=m, other=0.0)
    tl.store(out_ptr + b * C + cols, tl.sum(acc, axis=0), mask=cols < C)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.dim != 1:
            x = x.transpose(1, self.dim).contiguous()
        B, R, C = x.shape
        out = torch.empty((B, 1, C), device=x.device, dtype=x.dtype)
        sum_dim1[(B, triton.cdiv(C, 32))](x, out, R, C, BLOCK_R=64, BLOCK_C=32, num_warps=4)
        return out if self.dim == 1 else out.transpose(1, self.dim)
