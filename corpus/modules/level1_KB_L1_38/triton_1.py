import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def l1_norm_kernel(x_ptr, y_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, D, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.abs(tl.load(x_ptr + row * D + offs, mask=offs < D, other=0.0)))
    for start in range(0, D, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * D + offs, mask=offs < D, other=0.0)
        tl.store(y_ptr + row * D + offs, v / total, mask=offs < D)


class ModelNew(nn.Module):
    """
    L1 normalization with a two-pass Triton kernel.
    """

    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, D = x.shape
        y = torch.empty_like(x)
        l1_norm_kernel[(B,)](x, y, D, BLOCK=1024)
        return y
