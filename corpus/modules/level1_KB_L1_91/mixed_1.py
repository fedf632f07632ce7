import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_fwd(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    run = 0.0
    for s in range(0, N, BLOCK):
        o = s + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + o, mask=o < N, other=0.0)
        tl.store(y + row * N + o, run + tl.cumsum(v, 0), mask=o < N)
        run += tl.sum(v, 0)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        f = torch.flip(x, dims=[self.dim])
        cumsum_fwd[(x.shape[0],)](f, f, x.shape[1], BLOCK=256, num_warps=2)
        return torch.flip(f, dims=[self.dim])
