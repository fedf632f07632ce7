import torch
import triton
import triton.language as tl


@triton.jit
def patch_gemm(x_ptr, w_ptr, b_ptr, p_ptr, y_ptr, M, D, H, W, HP, WP, C: tl.constexpr, P: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    n = rm // (HP * WP)
    q = rm % (HP * WP)
    corner = n * C * H * W + (q // WP) * P * W + (q % WP) * P
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, C * P * P, BK):
        rk = k + tl.arange(0, BK)
        inside = (rk // (P * P)) * H * W + ((rk // P) % P) * W + rk % P
        a = tl.load(x_ptr + corner[:, None] + inside[None, :], mask=(rm < M)[:, None], other=0.0)
        w = tl.load(w_ptr + rn[None, :] * (C * P * P) + rk[:, None], mask=(rn < D)[None, :], other=0.0)
        acc = tl.dot(a, w, acc, input_precision="tf32")
    acc += tl.load(b_ptr + rn, mask=rn < D)[None, :]
    ok = (rm < M)[:, None] & (rn < D)[None, :]
    acc += tl.load(p_ptr + q[:, None] * D + rn[None, :], mask=ok)
    tl.store(y_ptr + rm[:, None] * D + rn[None, :], acc, mask=ok)


def custom_kernel(data):
    x, w, b, pos = data
    N, C, H, W = x.shape
    D, _, P, _ = w.shape
    HP, WP = H // P, W // P
    M = N * HP * WP
    y = torch.empty((N, HP * WP, D), device=x.device, dtype=x.dtype)
    patch_gemm[(triton.cdiv(M, 64), triton.cdiv(D, 128))](x, w, b, pos, y, M, D, H, W, HP, WP, C=C, P=P,
                                                          BM=64, BN=128, BK=32, num_warps=4, num_stages=3)
    return y
