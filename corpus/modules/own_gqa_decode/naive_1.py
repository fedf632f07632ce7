import math

import torch
import triton
import triton.language as tl


@triton.jit
def decode_head(q_ptr, k_ptr, v_ptr, len_ptr, o_ptr, scale, H, KVH, room, D: tl.constexpr, BN: tl.constexpr):
    """A program for each query head; keys are read again by each head of a group."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    kvh = h // (H // KVH)
    n = tl.load(len_ptr + b)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (b * H + h) * D + d).to(tl.float32) * scale
    base = (b * KVH + kvh).to(tl.int64) * room * D
    m = -float("inf")
    l = 0.0
    acc = tl.zeros((D,), tl.float32)
    for j in range(0, n, BN):
        at = j + tl.arange(0, BN)
        ok = at < n
        k = tl.load(k_ptr + base + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        s = tl.where(ok, tl.sum(k * q[None, :], 1), -float("inf"))
        mn = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - mn)
        c = tl.exp(m - mn)
        v = tl.load(v_ptr + base + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        acc = acc * c + tl.sum(p[:, None] * v, 0)
        l = l * c + tl.sum(p, 0)
        m = mn
    tl.store(o_ptr + (b * H + h) * D + d, (acc / l).to(tl.bfloat16))


def custom_kernel(data):
    q, k, v, lengths = data
    B, H, D = q.shape
    o = torch.empty_like(q)
    decode_head[(B, H)](q, k, v, lengths, o, 1.0 / math.sqrt(D), H, k.shape[1], k.shape[2], D=D, BN=32, num_warps=4)
    return o
