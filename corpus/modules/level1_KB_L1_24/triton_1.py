import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax_online(x_ptr, y_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * stride
    y_row = y_ptr + row * stride

    running_max = -float("inf")
    running_sum = 0.0
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        v = tl.load(x_row + offs, mask=offs < n_cols, other=-float("inf"))
        new_max = tl.maximum(running_max, tl.max(v, axis=0))
        running_sum = running_sum * tl.exp(running_max - new_max) + tl.sum(tl.exp(v - new_max), axis=0)
        running_max = new_max
    lse = running_max + tl.log(running_sum)

    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        m = offs < n_cols
        v = tl.load(x_row + offs, mask=m)
        tl.store(y_row + offs, v - lse, mask=m)


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dim() == 2 and self.dim in (1, -1)
        y = torch.empty_like(x)
        log_softmax_online[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=2048, num_warps=8)
        return y
