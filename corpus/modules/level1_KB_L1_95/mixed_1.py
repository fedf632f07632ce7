import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def nll_mean(logp, tgt, out, n, C, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        m = i < n
        t = tl.load(tgt + i, mask=m, other=0)
        acc -= tl.load(logp + i * C + t, mask=m, other=0.0)
    tl.store(out, tl.sum(acc, 0) / n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        logp = F.log_softmax(predictions, dim=-1)
        out = torch.empty((), device=logp.device, dtype=logp.dtype)
        nll_mean[(1,)](logp, targets, out, targets.numel(), predictions.shape[1], BLOCK=1024, num_warps=8)
        return out
