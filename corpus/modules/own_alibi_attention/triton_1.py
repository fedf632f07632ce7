import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 32}, num_warps=4, num_stages=3),
        triton.Config({"BM": 128, "BN": 64}, num_warps=8, num_stages=3),
    ],
    key=["L"],
)
@triton.jit
def alibi(q_ptr, k_ptr, v_ptr, s_ptr, o_ptr, L, H, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    bh = tl.program_id(1)
    slope = tl.load(s_ptr + bh % H)
    base = bh * L * D
    # the longest rows first
    i = tl.num_programs(0) - 1 - tl.program_id(0)
    rm = i * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * D + d[None, :], mask=(rm < L)[:, None], other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j in range(0, i * BM + BM, BN):
        rn = j + tl.arange(0, BN)
        k = tl.load(k_ptr + base + rn[None, :] * D + d[:, None], mask=(rn < L)[None, :], other=0.0)
        gap = rn[None, :] - rm[:, None]
        s = tl.dot(q, k) * scale + slope * gap.to(tl.float32)
        s = tl.where(gap <= 0, s, -float("inf"))
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        a = tl.exp(m - mn)
        l = l * a + tl.sum(p, 1)
        v = tl.load(v_ptr + base + rn[:, None] * D + d[None, :], mask=(rn < L)[:, None], other=0.0)
        acc = acc * a[:, None] + tl.dot(p.to(tl.float16), v)
        m = mn
    tl.store(o_ptr + base + rm[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16), mask=(rm < L)[:, None])


def custom_kernel(data):
    q, k, v, slopes = data
    B, H, L, D = q.shape
    o = torch.empty_like(q)
    alibi[lambda meta: (triton.cdiv(L, meta["BM"]), B * H)](q, k, v, slopes, o, L, H, D**-0.5, D=D)
    return o
