import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mse_atomic(p_ptr, t_ptr, out_ptr, n, inv_n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    d = tl.load(p_ptr + offs, mask=m, other=0.0) - tl.load(t_ptr + offs, mask=m, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(d * d, axis=0) * inv_n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        n = predictions.numel()
        out = torch.empty((), device=predictions.device, dtype=torch.float32)
        mse_atomic[(triton.cdiv(n, 2048),)](predictions, targets, out, n, 1.0 / n, BLOCK=2048, num_warps=8)
        return out
