import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tril_inplace(x_ptr, n, BR: tl.constexpr, BC: tl.constexpr):
    """Zero everything above the diagonal. Tiles wholly below it are left alone."""
    i = tl.program_id(0)
    j = tl.program_id(1)
    if j * BC + BC > i * BR:
        r = i * BR + tl.arange(0, BR)
        c = j * BC + tl.arange(0, BC)
        inside = (r[:, None] < n) & (c[None, :] < n)
        above = c[None, :] > r[:, None]
        z = tl.zeros((BR, BC), dtype=tl.float32)
        tl.store(x_ptr + r[:, None] * n + c[None, :], z, mask=inside & above)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        C = torch.matmul(A, B)
        n = C.shape[0]
        tril_inplace[(triton.cdiv(n, 32), triton.cdiv(n, 128))](C, n, BR=32, BC=128, num_warps=4)
        return C
