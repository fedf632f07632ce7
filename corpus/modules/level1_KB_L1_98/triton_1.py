import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kl_kernel(p_ptr, t_ptr, o_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    o = pid * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    p = tl.load(p_ptr + o, mask=m, other=1.0)
    t = tl.load(t_ptr + o, mask=m, other=1.0)
    kl = t * (tl.log(t) - tl.log(p))
    kl = tl.where(m & (t > 0), kl, 0.0)
    tl.store(o_ptr + pid, tl.sum(kl, axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        n = predictions.numel()
        blocks = triton.cdiv(n, 4096)
        part = torch.empty(blocks, device=predictions.device, dtype=torch.float32)
        kl_kernel[(blocks,)](predictions, targets, part, n, BLOCK=4096, num_warps=8)
        return part.sum() / predictions.shape[0]
