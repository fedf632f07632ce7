import torch
import triton
import triton.language as tl


@triton.jit
def topk_gate(x_ptr, w_ptr, e_ptr, tokens, E: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, E)
    ok = rows < tokens
    x = tl.load(x_ptr + rows[:, None] * E + cols[None, :], mask=ok[:, None], other=0.0)
    top = tl.max(x, axis=1)
    total = tl.zeros((ROWS,), tl.float32)
    slot = tl.arange(0, K)
    w = tl.zeros((ROWS, K), tl.float32)
    for i in tl.static_range(K):
        best = tl.max(x, axis=1)
        where = tl.argmax(x, axis=1)
        p = tl.exp(best - top)
        total += p
        w = tl.where(slot[None, :] == i, p[:, None], w)
        tl.store(e_ptr + rows * K + i, where.to(tl.int64), mask=ok)
        x = tl.where(cols[None, :] == where[:, None], -float("inf"), x)
    tl.store(w_ptr + rows[:, None] * K + slot[None, :], w / total[:, None], mask=ok[:, None])


def custom_kernel(data):
    logits, k = data
    T, E = logits.shape
    w = torch.empty((T, k), device=logits.device, dtype=torch.float32)
    e = torch.empty((T, k), device=logits.device, dtype=torch.int64)
    topk_gate[(triton.cdiv(T, 16),)](logits, w, e, T, E=E, K=k, ROWS=16, num_warps=4)
    return w, e
