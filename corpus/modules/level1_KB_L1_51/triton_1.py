import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def argmax_dim1_kernel(x_ptr, out_ptr, M, N, stride_b, stride_m, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid_b = tl.program_id(0)
    pid_n = tl.program_id(1)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = tl.arange(0, BLOCK_M)
    ptrs = x_ptr + pid_b * stride_b + rows[:, None] * stride_m + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tile = tl.load(ptrs, mask=mask, other=-float("inf"))
    idx = tl.argmax(tile, axis=0)
    tl.store(out_ptr + pid_b * N + cols, idx.to(tl.int64), mask=cols < N)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        assert x.dim() == 3 and self.dim == 1
        x = x.contiguous()
        B, M, N = x.shape
        out = torch.empty((B, N), dtype=torch.int64, device=x.device)
        BLOCK_N = 32
        grid = (B, triton.cdiv(N, BLOCK_N))
        argmax_dim1_kernel[grid](
            x, out, M, N, x.stride(0), x.stride(1),
            BLOCK_M=triton.next_power_of_2(M), BLOCK_N=BLOCK_N, num_warps=8,
        )
        return out
