import torch
import triton
import triton.language as tl


@triton.jit
def window_attention(q_ptr, k_ptr, v_ptr, o_ptr, L, window, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    bh = tl.program_id(1)
    base = bh * L * D
    rm = pid * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :], mask=rm[:, None] < L, other=0.0)
    m = tl.full((BM,), -1.0e9, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(pid * BM - window + 1, 0) // BN * BN
    for j in range(first, pid * BM + BM, BN):
        rn = j + tl.arange(0, BN)
        k = tl.load(k_ptr + base + rn[None, :] * D + rd[:, None], mask=rn[None, :] < L, other=0.0)
        v = tl.load(v_ptr + base + rn[:, None] * D + rd[None, :], mask=rn[:, None] < L, other=0.0)
        far = rm[:, None] - rn[None, :]
        seen = (far >= 0) & (far < window)
        s = tl.where(seen, tl.dot(q, k) * scale, -1.0e9)
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.where(seen, tl.exp(s - mn[:, None]), 0.0)
        alpha = tl.exp(m - mn)
        l = alpha * l + tl.sum(p, 1)
        acc = alpha[:, None] * acc + tl.dot(p.to(v.dtype), v)
        m = mn
    tl.store(o_ptr + base + rm[:, None] * D + rd[None, :], (acc / l[:, None]).to(tl.float16), mask=rm[:, None] < L)


def custom_kernel(data):
    q, k, v, window = data
    B, H, L, D = q.shape
    o = torch.empty_like(q)
    window_attention[(triton.cdiv(L, 64), B * H)](q, k, v, o, L, window, D**-0.5, D=D, BM=64, BN=64, num_warps=4)
    return o
