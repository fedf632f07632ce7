import torch
import triton
import triton.language as tl


@triton.jit
def gru_fused(x_ptr, h_ptr, wi_ptr, wh_ptr, bi_ptr, bh_ptr, o_ptr, M, D, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Both products and the gates in one kernel: four accumulators for a tile."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    okm = (rm < M)[:, None]
    okn = (rn < D)[None, :]
    r = tl.zeros((BM, BN), tl.float32)
    z = tl.zeros((BM, BN), tl.float32)
    nx = tl.zeros((BM, BN), tl.float32)
    nh = tl.zeros((BM, BN), tl.float32)
    for k in range(0, D, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * D + rk[None, :], mask=okm, other=0.0)
        h = tl.load(h_ptr + rm[:, None] * D + rk[None, :], mask=okm, other=0.0)
        w = rn[None, :] * D + rk[:, None]
        r = tl.dot(x, tl.load(wi_ptr + w, mask=okn, other=0.0), r)
        r = tl.dot(h, tl.load(wh_ptr + w, mask=okn, other=0.0), r)
        z = tl.dot(x, tl.load(wi_ptr + D * D + w, mask=okn, other=0.0), z)
        z = tl.dot(h, tl.load(wh_ptr + D * D + w, mask=okn, other=0.0), z)
        nx = tl.dot(x, tl.load(wi_ptr + 2 * D * D + w, mask=okn, other=0.0), nx)
        nh = tl.dot(h, tl.load(wh_ptr + 2 * D * D + w, mask=okn, other=0.0), nh)
    mn = rn < D
    r = tl.sigmoid(r + (tl.load(bi_ptr + rn, mask=mn) + tl.load(bh_ptr + rn, mask=mn))[None, :])
    z = tl.sigmoid(z + (tl.load(bi_ptr + D + rn, mask=mn) + tl.load(bh_ptr + D + rn, mask=mn))[None, :])
    n = nx + tl.load(bi_ptr + 2 * D + rn, mask=mn)[None, :] + r * (nh + tl.load(bh_ptr + 2 * D + rn, mask=mn)[None, :])
    n = 2 * tl.sigmoid(2 * n) - 1
    at = rm[:, None] * D + rn[None, :]
    h = tl.load(h_ptr + at, mask=okm & okn)
    tl.store(o_ptr + at, (1 - z) * n + z * h, mask=okm & okn)


def custom_kernel(data):
    x, h, w_ih, w_hh, b_ih, b_hh = data
    M, D = x.shape
    o = torch.empty_like(h)
    gru_fused[(triton.cdiv(M, 64), triton.cdiv(D, 64))](x, h, w_ih, w_hh, b_ih, b_hh, o, M, D, BM=64, BN=64, BK=32,
                                                        num_warps=8, num_stages=2)
    return o
