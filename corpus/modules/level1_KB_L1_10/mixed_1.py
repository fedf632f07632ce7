import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(src, dst, R, C, T: tl.constexpr):
    r = tl.program_id(0) * T + tl.arange(0, T)
    c = tl.program_id(1) * T + tl.arange(0, T)
    v = tl.load(src + r[:, None] * C + c[None, :], mask=(r[:, None] < R) & (c[None, :] < C))
    tl.store(dst + c[:, None] * R + r[None, :], tl.trans(v), mask=(c[:, None] < C) & (r[None, :] < R))


class ModelNew(nn.Module):
    """B transposed by a Triton kernel so that the GEMM runs in the NT layout through F.linear."""

    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        K, L = B.shape
        Bt = torch.empty((L, K), device=B.device, dtype=B.dtype)
        transpose_kernel[(triton.cdiv(K, 32), triton.cdiv(L, 32))](B, Bt, K, L, T=32)
        return torch.nn.functional.linear(A, Bt)
