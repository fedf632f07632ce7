import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triu_mm_kernel(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BLOCK + tl.arange(0, BLOCK)
    rn = pid_n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    if pid_m <= pid_n:
        # A[i, k] != 0 only for k >= i ; B[k, j] != 0 only for k <= j
        k_begin = pid_m * BLOCK
        k_end = (pid_n + 1) * BLOCK
        for k in range(k_begin, k_end, BK):
            rk = k + tl.arange(0, BK)
            a = tl.load(a_ptr + rm[:, None] * N + rk[None, :])
            b = tl.load(b_ptr + rk[:, None] * N + rn[None, :])
            acc += tl.dot(a, b, input_precision="ieee")
        acc = tl.where(rm[:, None] <= rn[None, :], acc, 0.0)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        N = A.shape[0]
        C = torch.empty_like(A)
        BLOCK = 64
        grid = (N // BLOCK, N // BLOCK)
        triu_mm_kernel[grid](A, B, C, N, BLOCK=BLOCK, BK=32, num_warps=4, num_stages=3)
        return C
