import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 256}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 256}, num_warps=8),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128}, num_warps=8),
    ],
    key=["M", "N"],
)
@triton.jit
def _outer_like(a, b, c, M, N, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # K is 16: rank-1 updates on the CUDA cores, no tensor cores at all
    for k in tl.static_range(K):
        av = tl.load(a + rows * K + k, mask=rows < M, other=0.0)
        bv = tl.load(b + k * N + cols, mask=cols < N, other=0.0)
        acc += av[:, None] * bv[None, :]
    tl.store(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        out = torch.empty((M, N), dtype=A.dtype, device=A.device)
        _outer_like[lambda m: (triton.cdiv(N, m["BLOCK_N"]), triton.cdiv(M, m["BLOCK_M"]))](A, B, out, M, N, K)
        return out
