import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def diag_matmul_kernel(diag_ptr, b_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    d = tl.load(diag_ptr + row)
    base = row * n_cols
    for start in range(0, n_cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        m = col < n_cols
        v = tl.load(b_ptr + base + col, mask=m)
        tl.store(out_ptr + base + col, v * d, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        N, M = B.shape
        out = torch.empty_like(B)
        diag_matmul_kernel[(N,)](A, B, out, N, M, BLOCK=1024)
        return out
