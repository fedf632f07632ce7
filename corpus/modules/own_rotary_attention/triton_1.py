import torch
import triton
import triton.language as tl


@triton.jit
def rope_flash(Q, K, V, COS, SIN, O, L, scale, H2: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Halves are kept apart: the score is the sum of two products."""
    D: tl.constexpr = 2 * H2
    i = tl.program_id(0)
    base = tl.program_id(1) * L * D
    rm = i * BM + tl.arange(0, BM)
    h = tl.arange(0, H2)
    d = tl.arange(0, D)
    qa = tl.load(Q + base + rm[:, None] * D + h[None, :]).to(tl.float32)
    qb = tl.load(Q + base + rm[:, None] * D + H2 + h[None, :]).to(tl.float32)
    c = tl.load(COS + rm[:, None] * H2 + h[None, :])
    s = tl.load(SIN + rm[:, None] * H2 + h[None, :])
    q0 = (qa * c - qb * s).to(tl.float16)
    q1 = (qb * c + qa * s).to(tl.float16)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j in range(0, (i + 1) * BM, BN):
        rn = j + tl.arange(0, BN)
        ka = tl.load(K + base + rn[None, :] * D + h[:, None]).to(tl.float32)
        kb = tl.load(K + base + rn[None, :] * D + H2 + h[:, None]).to(tl.float32)
        kc = tl.load(COS + rn[None, :] * H2 + h[:, None])
        ks = tl.load(SIN + rn[None, :] * H2 + h[:, None])
        w = tl.dot(q0, (ka * kc - kb * ks).to(tl.float16))
        w = tl.dot(q1, (kb * kc + ka * ks).to(tl.float16), w)
        w = tl.where(rm[:, None] >= rn[None, :], w * scale, -float("inf"))
        mn = tl.maximum(m, tl.max(w, 1))
        p = tl.exp(w - mn[:, None])
        a = tl.exp(m - mn)
        l = l * a + tl.sum(p, 1)
        v = tl.load(V + base + rn[:, None] * D + d[None, :])
        acc = acc * a[:, None] + tl.dot(p.to(tl.float16), v)
        m = mn
    tl.store(O + base + rm[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16))


def custom_kernel(data):
    q, k, v, cos, sin = data
    B, H, L, D = q.shape
    o = torch.empty_like(q)
    rope_flash[(L // 64, B * H)](q, k, v, cos, sin, o, L, D**-0.5, H2=D // 2, BM=64, BN=64, num_warps=4, num_stages=2)
    return o
