import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hinge_one_block(p, t, out, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    m = o < n
    v = 1.0 - tl.load(p + o, mask=m, other=0.0) * tl.load(t + o, mask=m, other=0.0)
    v = tl.where(m, tl.maximum(v, 0.0), 0.0)
    tl.store(out, tl.sum(v, axis=0) / n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        n = predictions.numel()
        out = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        hinge_one_block[(1,)](predictions, targets, out, n, BLOCK=triton.next_power_of_2(n), num_warps=4)
        return out
