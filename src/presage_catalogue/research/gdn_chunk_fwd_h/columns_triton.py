# presage: problem gdn_chunk_fwd_h
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BV = 16, 32, 64
# presage: tune WARPS = 4, 2, 8
# presage: tune STAGES = 2, 1, 3
# presage: tune EARLY = 0, 1
# presage: where PRECISION != 'ieee' or BV <= 8 * WARPS
# presage: where (PRECISION != 'tf32' or (STAGES == 2 and EARLY == 0)) and (EARLY == 0 or STAGES != 3)
#
# A program keeps BV columns of a head's state and goes from chunk to chunk; EARLY loads the keys before the new values are known.
import torch
import triton
import triton.language as tl


@triton.jit
def recur(
    k_ptr, w_ptr, u_ptr, g_ptr, h_ptr, v_ptr, chunks, dk, dv,
    BD: tl.constexpr, BV: tl.constexpr, EARLY: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    t = tl.arange(0, 64)
    d = tl.arange(0, BD)
    j = tl.program_id(0) * BV + tl.arange(0, BV)[None, :]
    there = (d[:, None] < dk) & (j < dv)
    state = tl.zeros([BD, BV], tl.float32)
    for c in tl.range(0, chunks, num_stages=STAGES):
        first = (head * chunks + c) * 64
        tl.store(h_ptr + ((head * chunks + c) * dk + d[:, None]) * dv + j, state, mask=there)
        w = tl.load(w_ptr + (first + t[:, None]) * dk + d[None, :], mask=d[None, :] < dk, other=0.0)
        if EARLY:
            k = tl.load(k_ptr + (first + t[None, :]) * dk + d[:, None], mask=d[:, None] < dk, other=0.0)
        u = tl.load(u_ptr + (first + t[:, None]) * dv + j, mask=j < dv, other=0.0)
        g = tl.load(g_ptr + first + t)
        last = tl.load(g_ptr + first + 63)
        value = u - tl.dot(w, state, input_precision=PRECISION)
        tl.store(v_ptr + (first + t[:, None]) * dv + j, value, mask=j < dv)
        kept = value * tl.exp(last - g)[:, None]
        if not EARLY:
            k = tl.load(k_ptr + (first + t[None, :]) * dk + d[:, None], mask=d[:, None] < dk, other=0.0)
        state = state * tl.exp(last) + tl.dot(k, kept, input_precision=PRECISION)


def custom_kernel(data):
    k, w, u, g = data
    (heads, length, dk), dv = k.shape, u.shape[2]
    h = torch.empty((heads, length // 64, dk, dv), dtype=u.dtype, device=u.device)
    v_new = torch.empty_like(u)
    recur[(triton.cdiv(dv, BV), heads)](
        k, w, u, g, h, v_new, length // 64, dk, dv,
        BD=max(16, triton.next_power_of_2(dk)), BV=BV, EARLY=EARLY, STAGES=STAGES, PRECISION=PRECISION, num_warps=WARPS,
    )
    return h, v_new
