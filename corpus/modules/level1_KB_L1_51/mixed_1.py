import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_argmax(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=-float("inf"))
    tl.store(out_ptr + row, tl.argmax(v, axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        # reduce over a contiguous last axis: torch permutes, triton reduces
        xt = x.movedim(self.dim, -1).contiguous()
        shape = xt.shape[:-1]
        rows = xt.numel() // xt.shape[-1]
        out = torch.empty(rows, dtype=torch.int64, device=x.device)
        row_argmax[(rows,)](xt, out, xt.shape[-1], BLOCK=triton.next_power_of_2(xt.shape[-1]), num_warps=1)
        return out.view(shape)
