import torch
import triton
import triton.language as tl


@triton.jit
def grouped_gemm(x_ptr, m_ptr, order_ptr, first_ptr, expert_ptr, end_ptr, w_ptr, y_ptr, D, K: tl.constexpr,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    pn = tl.program_id(1)
    e = tl.load(expert_ptr + tile)
    if e < 0:
        return
    rows = tl.load(first_ptr + tile) + tl.arange(0, BM)
    ok = rows < tl.load(end_ptr + tile)
    pair = tl.load(order_ptr + rows, mask=ok, other=0)
    token = pair // K
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, D, BK):
        a = tl.load(x_ptr + token[:, None] * D + (k + rk)[None, :], mask=ok[:, None], other=0.0)
        b = tl.load(m_ptr + e * D * D + (k + rk)[:, None] * D + rn[None, :])
        acc = tl.dot(a, b, acc)
    w = tl.load(w_ptr + pair, mask=ok, other=0.0).to(tl.float32)
    tl.store(y_ptr + pair[:, None] * D + rn[None, :], (acc * w[:, None]).to(tl.float16), mask=ok[:, None])


def custom_kernel(data):
    x, weights, experts, matrices = data
    T, D = x.shape
    K, E, BM = experts.shape[1], matrices.shape[0], 64
    flat = experts.reshape(-1)
    order = torch.argsort(flat)
    count = torch.bincount(flat, minlength=E)
    end = torch.cumsum(count, 0)
    begin = end - count
    tiles = (count + BM - 1) // BM
    tile_end = torch.cumsum(tiles, 0)
    most = triton.cdiv(T * K, BM) + E
    t = torch.arange(most, device=x.device)
    expert = torch.searchsorted(tile_end, t, right=True)
    e = expert.clamp(max=E - 1)
    first = begin[e] + (t - (tile_end - tiles)[e]) * BM
    expert = torch.where(expert < E, expert, -1)
    y = torch.empty((T, K, D), device=x.device, dtype=x.dtype)
    grouped_gemm[(most, D // 128)](x, matrices, order, first, expert, end[e].contiguous(), weights, y, D, K=K,
                                   BM=BM, BN=128, BK=64, num_warps=4, num_stages=3)
    return y.sum(1)
