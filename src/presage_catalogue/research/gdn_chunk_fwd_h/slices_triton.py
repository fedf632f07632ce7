# presage: problem gdn_chunk_fwd_h
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BV = 32, 16, 64
# presage: tune BD = 32, 16, 64
# presage: tune WARPS = 4, 2, 8
# presage: where 64 * BV <= 1024 * WARPS and BD * BV >= 64 * WARPS and (PRECISION != 'tf32' or WARPS == 4)
#
# A program goes from chunk to chunk with BV columns of a head's state, which it leaves in memory and reads again in
# slices of BD rows.
import torch
import triton
import triton.language as tl


@triton.jit
def recur(
    k_ptr, w_ptr, u_ptr, g_ptr, h_ptr, v_ptr, chunks, dk, dv,
    BD: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    t = tl.arange(0, 64)
    j = tl.program_id(0) * BV + tl.arange(0, BV)[None, :]
    for start in tl.range(0, dk, BD, num_stages=1):
        d = start + tl.arange(0, BD)
        zeros = tl.zeros([BD, BV], tl.float32)
        tl.store(h_ptr + (head * chunks * dk + d[:, None]) * dv + j, zeros, mask=(d[:, None] < dk) & (j < dv))
    for c in tl.range(0, chunks, num_stages=1):
        first = (head * chunks + c) * 64
        state_ptr = h_ptr + (head * chunks + c) * dk * dv
        tl.debug_barrier()
        value = tl.load(u_ptr + (first + t[:, None]) * dv + j, mask=j < dv, other=0.0)
        for start in tl.range(0, dk, BD, num_stages=1):
            d = start + tl.arange(0, BD)
            w = tl.load(w_ptr + (first + t[:, None]) * dk + d[None, :], mask=d[None, :] < dk, other=0.0)
            state = tl.load(state_ptr + d[:, None] * dv + j, mask=(d[:, None] < dk) & (j < dv), other=0.0)
            value -= tl.dot(w, state, input_precision=PRECISION)
        tl.store(v_ptr + (first + t[:, None]) * dv + j, value, mask=j < dv)
        last = tl.load(g_ptr + first + 63)
        kept = value * tl.exp(last - tl.load(g_ptr + first + t))[:, None]
        if c + 1 < chunks:
            for start in tl.range(0, dk, BD, num_stages=1):
                d = start + tl.arange(0, BD)
                there = (d[:, None] < dk) & (j < dv)
                k = tl.load(k_ptr + (first + t[None, :]) * dk + d[:, None], mask=d[:, None] < dk, other=0.0)
                state = tl.load(state_ptr + d[:, None] * dv + j, mask=there, other=0.0) * tl.exp(last)
                state += tl.dot(k, kept, input_precision=PRECISION)
                tl.store(state_ptr + dk * dv + d[:, None] * dv + j, state, mask=there)


def custom_kernel(data):
    k, w, u, g = data
    (heads, length, dk), dv = k.shape, u.shape[2]
    h = torch.empty((heads, length // 64, dk, dv), dtype=u.dtype, device=u.device)
    v_new = torch.empty_like(u)
    recur[(triton.cdiv(dv, BV), heads)](
        k, w, u, g, h, v_new, length // 64, dk, dv, BD=BD, BV=BV, PRECISION=PRECISION, num_warps=WARPS,
    )
    return h, v_new
