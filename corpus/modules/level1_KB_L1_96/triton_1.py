import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def huber_partial(a, b, part, n, BLOCK: tl.constexpr, ITERS: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for it in range(ITERS):
        o = (pid * ITERS + it) * BLOCK + tl.arange(0, BLOCK)
        m = o < n
        d = tl.abs(tl.load(a + o, mask=m, other=0.0) - tl.load(b + o, mask=m, other=0.0))
        acc += tl.where(d < 1.0, 0.5 * d * d, d - 0.5)
    tl.store(part + pid, tl.sum(acc, axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        n = predictions.numel()
        BLOCK, ITERS = 1024, 4
        g = triton.cdiv(n, BLOCK * ITERS)
        part = torch.empty(g, device=predictions.device, dtype=torch.float32)
        huber_partial[(g,)](predictions, targets, part, n, BLOCK=BLOCK, ITERS=ITERS, num_warps=4)
        return part.sum() / n
