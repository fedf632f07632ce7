# presage: problem swiglu_mlp
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 64, 32, 128, 16
# presage: tune BN = 64, 32, 128
# presage: tune BK = 16, 32
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 3, 2
# presage: where BM * BN <= 1024 * WARPS and BM * BN >= 256 * WARPS and (BK == 32 or STAGES == 3)
# presage: where PRECISION != 'tf32' or (WARPS == 4 and STAGES == 3 and BK == 32)
#
# Two launches, each in tiles of BM * BN: both products with x, gated, and the product with w2.
import torch
import triton
import triton.language as tl


@triton.jit
def expand(
    x_ptr, w1_ptr, w3_ptr, h_ptr, tokens, d, f,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    col = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    a = tl.zeros([BM, BN], tl.float32)
    b = tl.zeros([BM, BN], tl.float32)
    for start in range(0, d, BK):
        p = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * d + p[None, :], mask=(row < tokens) & (p[None, :] < d), other=0.0)
        there = (p[:, None] < d) & (col < f)
        a += tl.dot(x, tl.load(w1_ptr + p[:, None] * f + col, mask=there, other=0.0), input_precision=PRECISION)
        b += tl.dot(x, tl.load(w3_ptr + p[:, None] * f + col, mask=there, other=0.0), input_precision=PRECISION)
    tl.store(h_ptr + row * f + col, a / (1.0 + tl.exp(-a)) * b, mask=(row < tokens) & (col < f))


@triton.jit
def contract(
    h_ptr, w2_ptr, y_ptr, tokens, d, f,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    col = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    y = tl.zeros([BM, BN], tl.float32)
    for start in range(0, f, BK):
        p = start + tl.arange(0, BK)
        h = tl.load(h_ptr + row * f + p[None, :], mask=(row < tokens) & (p[None, :] < f), other=0.0)
        w = tl.load(w2_ptr + p[:, None] * d + col, mask=(p[:, None] < f) & (col < d), other=0.0)
        y += tl.dot(h, w, input_precision=PRECISION)
    tl.store(y_ptr + row * d + col, y, mask=(row < tokens) & (col < d))


def custom_kernel(data):
    x, w1, w3, w2 = data
    (tokens, d), f = x.shape, w1.shape[1]
    hidden = torch.empty((tokens, f), dtype=x.dtype, device=x.device)
    y = torch.empty_like(x)
    options = {"BM": BM, "BN": BN, "BK": BK, "PRECISION": PRECISION, "num_warps": WARPS, "num_stages": STAGES}
    expand[(triton.cdiv(tokens, BM), triton.cdiv(f, BN))](x, w1, w3, hidden, tokens, d, f, **options)
    contract[(triton.cdiv(tokens, BM), triton.cdiv(d, BN))](hidden, w2, y, tokens, d, f, **options)
    return y
