import math

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, part_ptr, max_ptr, sum_ptr, scale, room, splits,
                 KVH: tl.constexpr, G: tl.constexpr, GP: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    bh = tl.program_id(0)
    sp = tl.program_id(1)
    b = bh // KVH
    n = tl.load(len_ptr + b).to(tl.int32)
    chunk = tl.cdiv(tl.cdiv(room, splits), BN) * BN
    start = sp * chunk
    end = min(start + chunk, n)
    g = tl.arange(0, GP)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (bh * G + g)[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    m = tl.full((GP,), -1e30, tl.float32)
    l = tl.zeros((GP,), tl.float32)
    acc = tl.zeros((GP, D), tl.float32)
    kv = bh.to(tl.int64) * room * D
    for j in range(start, end, BN):
        at = j + tl.arange(0, BN)
        ok = at < end
        k = tl.load(k_ptr + kv + at[None, :] * D + d[:, None], mask=ok[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(ok[None, :], s, -1e30)
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        a = tl.exp(m - mn)
        l = l * a + tl.sum(p, 1)
        v = tl.load(v_ptr + kv + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        acc = acc * a[:, None] + tl.dot(p.to(tl.bfloat16), v)
        m = mn
    row = (bh * splits + sp) * G + g
    tl.store(part_ptr + row[:, None] * D + d[None, :], acc, mask=(g < G)[:, None])
    tl.store(max_ptr + row, m, mask=g < G)
    tl.store(sum_ptr + row, l, mask=g < G)


@triton.jit
def merge_kernel(part_ptr, max_ptr, sum_ptr, o_ptr, G, splits, D: tl.constexpr, SP: tl.constexpr):
    pid = tl.program_id(0)
    bh = pid // G
    g = pid % G
    s = tl.arange(0, SP)
    d = tl.arange(0, D)
    ok = s < splits
    row = (bh * splits + s) * G + g
    m = tl.load(max_ptr + row, mask=ok, other=-1e30)
    l = tl.load(sum_ptr + row, mask=ok, other=0.0)
    top = tl.max(m, 0)
    w = tl.exp(m - top)
    acc = tl.load(part_ptr + row[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
    out = tl.sum(acc * w[:, None], 0) / tl.sum(l * w, 0)
    tl.store(o_ptr + pid * D + d, out.to(tl.bfloat16))


def custom_kernel(data):
    q, k, v, lengths = data
    B, H, D = q.shape
    KVH, room = k.shape[1], k.shape[2]
    G, splits = H // KVH, 4
    part = torch.empty((B * KVH, splits, G, D), device=q.device, dtype=torch.float32)
    mx = torch.empty((B * KVH, splits, G), device=q.device, dtype=torch.float32)
    sm = torch.empty_like(mx)
    o = torch.empty_like(q)
    split_kernel[(B * KVH, splits)](q, k, v, lengths, part, mx, sm, 1.0 / math.sqrt(D), room, splits,
                                    KVH=KVH, G=G, GP=16, D=D, BN=64, num_warps=4, num_stages=3)
    merge_kernel[(B * H,)](part, mx, sm, o, G, splits, D=D, SP=triton.next_power_of_2(splits), num_warps=2)
    return o
