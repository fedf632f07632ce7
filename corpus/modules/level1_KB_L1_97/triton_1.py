import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cos_row(p_ptr, t_ptr, out_ptr, D, inv_b, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < D
    a = tl.load(p_ptr + row * D + o, mask=m, other=0.0)
    b = tl.load(t_ptr + row * D + o, mask=m, other=0.0)
    dot = tl.sum(a * b, axis=0)
    na = tl.sqrt(tl.sum(a * a, axis=0))
    nb = tl.sqrt(tl.sum(b * b, axis=0))
    cos = dot / (tl.maximum(na, 1e-8) * tl.maximum(nb, 1e-8))
    tl.atomic_add(out_ptr, (1.0 - cos) * inv_b)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        B, D = predictions.shape
        out = torch.zeros((), device=predictions.device, dtype=predictions.dtype)
        cos_row[(B,)](predictions, targets, out, D, 1.0 / B, BLOCK=triton.next_power_of_2(D), num_warps=8)
        return out
