import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def small_k_matmul(a_ptr, b_ptr, c_ptr, M, N, K: tl.constexpr,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """K fits one block, so a single tl.dot per program; the kernel is bound by writing C."""
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, K)

    a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0)
    b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :], mask=offs_n[None, :] < N, other=0.0)
    c = tl.dot(a, b, input_precision="tf32x3")
    tl.store(c_ptr + offs_m[:, None].to(tl.int64) * N + offs_n[None, :], c,
             mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M, K = A.shape
        N = B.shape[1]
        C = torch.empty((M, N), device=A.device, dtype=torch.float32)
        grid = (triton.cdiv(N, 128), triton.cdiv(M, 128))
        small_k_matmul[grid](A, B, C, M, N, K, BLOCK_M=128, BLOCK_N=128, num_warps=8, num_stages=1)
        return C
