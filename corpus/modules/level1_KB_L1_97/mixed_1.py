import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def rowdot(a, b, out, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, D, BLOCK):
        o = s + tl.arange(0, BLOCK)
        acc += tl.load(a + r * D + o, mask=o < D, other=0.0) * tl.load(b + r * D + o, mask=o < D, other=0.0)
    tl.store(out + r, tl.sum(acc, 0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        p = F.normalize(predictions, dim=1)
        t = F.normalize(targets, dim=1)
        cos = torch.empty(p.shape[0], device=p.device)
        rowdot[(p.shape[0],)](p, t, cos, p.shape[1], BLOCK=512)
        return (1 - cos).mean()
