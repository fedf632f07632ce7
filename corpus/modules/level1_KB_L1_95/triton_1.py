import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ce_kernel(logits, target, loss, n_rows, n_cls, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    ok = (r < n_rows)[:, None] & (c < n_cls)[None, :]
    z = tl.load(logits + r[:, None] * n_cls + c[None, :], mask=ok, other=-float("inf"))
    z = tl.where((r < n_rows)[:, None], z, 0.0)
    mx = tl.max(z, axis=1)
    lse = tl.log(tl.sum(tl.exp(z - mx[:, None]), axis=1)) + mx
    t = tl.load(target + r, mask=r < n_rows, other=0)
    picked = tl.load(logits + r * n_cls + t, mask=r < n_rows, other=0.0)
    tl.store(loss + r, lse - picked, mask=r < n_rows)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        n, c = predictions.shape
        loss = torch.empty(n, device=predictions.device, dtype=torch.float32)
        ce_kernel[(triton.cdiv(n, 64),)](predictions, targets, loss, n, c, ROWS=64, COLS=triton.next_power_of_2(c), num_warps=2)
        return loss.mean()
