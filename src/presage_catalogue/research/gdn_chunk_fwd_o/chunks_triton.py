# presage: problem gdn_chunk_fwd_o
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune ROWS = 64, 32, 16
# presage: tune BV = 32, 64, 128
# presage: tune BD = 32, 16, 64
# presage: tune WARPS = 4, 8, 2
# presage: tune GATE = 0, 1
# presage: where ROWS * BV <= 1024 * WARPS and ROWS * BV >= 256 * WARPS and (GATE == 0 or (BV == 64 and BD == 32))
# presage: where (PRECISION != 'tf32' or (WARPS == 4 and GATE == 0 and BD == 32)) and (BD != 16 or WARPS == 4)
#
# A program computes ROWS of a chunk's tokens and BV columns: scores and the state's part together, BD rows of the state
# at a time. GATE puts exp(g) on the queries and exp(-g) on the keys, and not their quotient on the scores.
import torch
import triton
import triton.language as tl


@triton.jit
def output(
    q_ptr, k_ptr, v_ptr, h_ptr, g_ptr, o_ptr, dk, dv, scale,
    ROWS: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, GATE: tl.constexpr, PRECISION: tl.constexpr,
):
    chunk = tl.program_id(1).to(tl.int64)
    i = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    s = tl.arange(0, 64)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    gi = tl.load(g_ptr + chunk * 64 + i)
    gs = tl.load(g_ptr + chunk * 64 + s)
    scores = tl.zeros([ROWS, 64], tl.float32)
    o = tl.zeros([ROWS, BV], tl.float32)
    for start in range(0, dk, BD):
        d = start + tl.arange(0, BD)
        q = tl.load(q_ptr + (chunk * 64 + i[:, None]) * dk + d[None, :], mask=d[None, :] < dk, other=0.0)
        k = tl.load(k_ptr + (chunk * 64 + s[None, :]) * dk + d[:, None], mask=d[:, None] < dk, other=0.0)
        there = (d[:, None] < dk) & (j[None, :] < dv)
        h = tl.load(h_ptr + (chunk * dk + d[:, None]) * dv + j[None, :], mask=there, other=0.0)
        if GATE:
            q = q * tl.exp(gi)[:, None]
            k = k * tl.exp(-gs)[None, :]
        scores += tl.dot(q, k, input_precision=PRECISION)
        o += tl.dot(q, h, input_precision=PRECISION)
    causal = i[:, None] >= s[None, :]
    if not GATE:
        o = o * tl.exp(gi)[:, None]
        scores = scores * tl.exp(tl.where(causal, gi[:, None] - gs[None, :], 0.0))
    scores = tl.where(causal, scores, 0.0)
    v = tl.load(v_ptr + (chunk * 64 + s[:, None]) * dv + j[None, :], mask=j[None, :] < dv, other=0.0)
    o += tl.dot(scores, v, input_precision=PRECISION)
    tl.store(o_ptr + (chunk * 64 + i[:, None]) * dv + j[None, :], o * scale, mask=j[None, :] < dv)


def custom_kernel(data):
    q, k, v_new, h, g = data
    (heads, length, dk), dv = q.shape, v_new.shape[2]
    o = torch.empty_like(v_new)
    output[(triton.cdiv(dv, BV), heads * length // 64, 64 // ROWS)](
        q, k, v_new, h, g, o, dk, dv, dk**-0.5,
        ROWS=ROWS, BD=BD, BV=BV, GATE=GATE, PRECISION=PRECISION, num_warps=WARPS,
    )
    return o
