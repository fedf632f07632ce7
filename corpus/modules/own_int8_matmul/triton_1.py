import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64}, num_warps=4, num_stages=3),
        triton.Config({"BM": 64, "BN": 128}, num_warps=4, num_stages=4),
        triton.Config({"BM": 128, "BN": 128}, num_warps=8, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def w8a16(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K // BK):
        a = tl.load(x_ptr + rm[:, None] * K + (k * BK + rk)[None, :], mask=(rm < M)[:, None], other=0.0)
        w = tl.load(w_ptr + rn[None, :] * K + (k * BK + rk)[:, None], mask=(rn < N)[None, :], other=0)
        s = tl.load(s_ptr + rn * (K // BK) + k, mask=rn < N, other=0.0).to(tl.float32)
        acc += tl.dot(a, w.to(tl.float16)) * s[None, :]
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm < M)[:, None] & (rn < N)[None, :])


def custom_kernel(data):
    x, w, s = data
    M, K = x.shape
    N = w.shape[0]
    y = torch.empty((M, N), device=x.device, dtype=torch.float16)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    w8a16[grid](x, w, s, y, M, N, K, BK=128)
    return y
