import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exp_shift(x_ptr, m_ptr, y_ptr, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = c < n
    m = tl.load(m_ptr + r)
    tl.store(y_ptr + r * n + c, tl.exp(tl.load(x_ptr + r * n + c, mask=mask, other=0.0) - m), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, n = x.shape
        peak = x.amax(dim=1)
        e = torch.empty_like(x)
        exp_shift[(rows, triton.cdiv(n, 2048))](x, peak, e, n, BLOCK=2048, num_warps=8)
        return e.div_(e.sum(dim=1, keepdim=True))
