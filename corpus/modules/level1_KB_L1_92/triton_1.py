import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def excl_scan(x_ptr, y_ptr, n_in, BLOCK: tl.constexpr):
    # y[r, 0] = 0, y[r, j] = sum x[r, :j]; rows of y are one longer than rows of x
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + row * n_in + j - 1, mask=(j > 0) & (j <= n_in), other=0.0)
    tl.store(y_ptr + row * (n_in + 1) + j, tl.cumsum(v, axis=0), mask=j <= n_in)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        # the reference slices [:-1] along the first axis, so the last row is dropped
        rows, cols = x.shape
        y = torch.empty(rows - 1, cols + 1, device=x.device, dtype=x.dtype)
        excl_scan[(rows - 1,)](x, y, cols, BLOCK=triton.next_power_of_2(cols + 1), num_warps=8)
        return y
