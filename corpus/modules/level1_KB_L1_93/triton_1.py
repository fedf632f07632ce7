import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_cumsum(x_ptr, m_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for s in range(0, N, BLOCK):
        o = s + tl.arange(0, BLOCK)
        ok = o < N
        keep = tl.load(m_ptr + row * N + o, mask=ok, other=0)
        v = tl.load(x_ptr + row * N + o, mask=ok & (keep != 0), other=0.0)
        c = tl.cumsum(v, axis=0) + carry
        tl.store(y_ptr + row * N + o, c, mask=ok)
        carry += tl.sum(v, axis=0)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        y = torch.empty_like(x)
        masked_cumsum[(x.shape[0],)](x.contiguous(), mask.contiguous().view(torch.uint8), y, x.shape[1], BLOCK=512, num_warps=4)
        return y
