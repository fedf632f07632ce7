import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def elu_kernel(x_ptr, y_ptr, alpha, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    x = tl.load(x_ptr + o, mask=m, other=0.0)
    y = tl.where(x > 0, x, tl.exp(x) - alpha)
    tl.store(y_ptr + o, y, mask=m)


class ModelNew(nn.Module):
    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        # one block per row of 16384
        elu_kernel[(triton.cdiv(n, 8192),)](x, y, self.alpha, n, BLOCK=8192, num_warps=4)
        return y
