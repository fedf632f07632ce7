import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def apply_prefix(y_ptr, pre_ptr, n_chunks, C, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    ch = tl.program_id(1)
    o = tl.arange(0, BLOCK)
    m = o < C
    p = tl.load(pre_ptr + row * n_chunks + ch)
    ptr = y_ptr + (row * n_chunks + ch) * C + o
    tl.store(ptr, tl.load(ptr, mask=m, other=1.0) * p, mask=m)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.chunk = 250

    def forward(self, x):
        rows, n = x.shape
        c = self.chunk
        local = torch.cumprod(x.view(rows, n // c, c), dim=2)
        prefix = torch.cumprod(local[:, :, -1], dim=1)
        apply_prefix[(rows, n // c)](local, prefix, n // c, c, BLOCK=256, num_warps=2)
        return local.view(rows, n)
