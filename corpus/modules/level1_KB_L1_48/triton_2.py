import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_mean(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(y_ptr + row, tl.sum(x, axis=0) / n_cols)


class ModelNew(nn.Module):
    """Mean reduction: flatten to rows and let a program reduce each one."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = list(x.shape)
        n = shape.pop(self.dim)
        rows = x.numel() // n
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        row_mean[(rows,)](x.contiguous(), y, n, BLOCK=triton.next_power_of_2(n), num_warps=1)
        return y.view(shape)
