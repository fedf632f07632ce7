# presage: problem gdn_recompute_w_u
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BC = 32, 64, 128, 16
# presage: tune BS = 32, 16, 64
# presage: tune SPLIT = 0, 1
# presage: tune WARPS = 4, 2, 8
# presage: tune STAGES = 2, 3
# presage: where (PRECISION != 'tf32' or (WARPS == 4 and STAGES == 2)) and (STAGES == 2 or BS == 16) and 16 * BC >= 64 * WARPS
# presage: where BC <= 16 * WARPS and (BS != 64 or (SPLIT == 1 and PRECISION != 'ieee'))
#
# A program multiplies one chunk's matrix with the keys and then the values, BC columns at a time and BS tokens of the
# sum at a time; SPLIT makes a program of each block of columns.
import torch
import triton
import triton.language as tl


@triton.jit
def columns(
    a_ptr, from_ptr, beta_ptr, g_ptr, to_ptr, first, start, width,
    GATED: tl.constexpr, BC: tl.constexpr, BS: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):
    t = tl.arange(0, 64)[:, None]
    c = start + tl.arange(0, BC)[None, :]
    sums = tl.zeros([64, BC], tl.float32)
    for begin in tl.range(0, 64, BS, num_stages=STAGES):
        s = begin + tl.arange(0, BS)
        a = tl.load(a_ptr + (first + t) * 64 + s[None, :])
        factor = tl.load(beta_ptr + first + s)
        if GATED:
            factor = factor * tl.exp(tl.load(g_ptr + first + s))
        right = tl.load(from_ptr + (first + s[:, None]) * width + c, mask=c < width, other=0.0) * factor[:, None]
        sums += tl.dot(a, right, input_precision=PRECISION)
    tl.store(to_ptr + (first + t) * width + c, sums, mask=c < width)


@triton.jit
def multiply(
    k_ptr, v_ptr, beta_ptr, a_ptr, g_ptr, w_ptr, u_ptr, dk, dv,
    BC: tl.constexpr, BS: tl.constexpr, SPLIT: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64) * 64
    if SPLIT:
        start = tl.program_id(1) * BC
        for_w = tl.cdiv(dk, BC) * BC
        if start < for_w:
            columns(a_ptr, k_ptr, beta_ptr, g_ptr, w_ptr, first, start, dk, True, BC, BS, STAGES, PRECISION)
        else:
            columns(a_ptr, v_ptr, beta_ptr, g_ptr, u_ptr, first, start - for_w, dv, False, BC, BS, STAGES, PRECISION)
    else:
        for start in range(0, dk, BC):
            columns(a_ptr, k_ptr, beta_ptr, g_ptr, w_ptr, first, start, dk, True, BC, BS, STAGES, PRECISION)
        for start in range(0, dv, BC):
            columns(a_ptr, v_ptr, beta_ptr, g_ptr, u_ptr, first, start, dv, False, BC, BS, STAGES, PRECISION)


def custom_kernel(data):
    k, v, beta, a, g = data
    (heads, length, dk), dv = k.shape, v.shape[2]
    w, u = torch.empty_like(k), torch.empty_like(v)
    grid = (heads * length // 64, triton.cdiv(dk, BC) + triton.cdiv(dv, BC) if SPLIT else 1)
    multiply[grid](
        k, v, beta, a, g, w, u, dk, dv,
        BC=BC, BS=BS, SPLIT=SPLIT, STAGES=STAGES, PRECISION=PRECISION, num_warps=WARPS,
    )
    return w, u
