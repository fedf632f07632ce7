# presage: problem linear_attention
# presage: tune METHOD = carry, pairs, split
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BT = 32, 64, 128, 16
# presage: tune BV = 32, 64, 16
# presage: tune WARPS = 4, 8, 2
# presage: where PRECISION != 'ieee' or BT <= 32 or (BT == 64 and BV == 32 and WARPS == 8)
# presage: where BT * BV >= 256 * WARPS and BT * BV <= 2048 * WARPS and (PRECISION != 'tf32' or (WARPS == 4 and BV == 32))
#
# carry: a program goes from chunk to chunk of BT tokens with BV columns of the state. pairs: a program computes BT tokens
# from all before, block by block. split: one launch sums each chunk, a cumulative sum makes states of the sums, and a
# third launch computes the outputs of all chunks at once.
import torch
import triton
import triton.language as tl


@triton.jit
def rows_of(ptr, first, start, length, width, c, BT: tl.constexpr):
    t = start + tl.arange(0, BT)[:, None]
    return tl.load(ptr + (first + t) * width + c[None, :], mask=(t < length) & (c[None, :] < width), other=0.0)


@triton.jit
def within(q, k, v, start_q, start_k, BT: tl.constexpr, PRECISION: tl.constexpr):
    t = tl.arange(0, BT)
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    scores = tl.where(start_q + t[:, None] >= start_k + t[None, :], scores, 0.0)
    return tl.dot(scores, v, input_precision=PRECISION)


@triton.jit
def write(o_ptr, o, first, start, length, dv, j, BT: tl.constexpr):
    t = start + tl.arange(0, BT)[:, None]
    tl.store(o_ptr + (first + t) * dv + j[None, :], o, mask=(t < length) & (j[None, :] < dv))


@triton.jit
def carry(
    q_ptr, k_ptr, v_ptr, o_ptr, length, dk, dv,
    BT: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    first = tl.program_id(1).to(tl.int64) * length
    d = tl.arange(0, BD)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    state = tl.zeros([BD, BV], tl.float32)
    for start in range(0, length, BT):
        q = rows_of(q_ptr, first, start, length, dk, d, BT)
        k = rows_of(k_ptr, first, start, length, dk, d, BT)
        v = rows_of(v_ptr, first, start, length, dv, j, BT)
        o = within(q, k, v, start, start, BT, PRECISION) + tl.dot(q, state, input_precision=PRECISION)
        write(o_ptr, o, first, start, length, dv, j, BT)
        state += tl.dot(tl.trans(k), v, input_precision=PRECISION)


@triton.jit
def pairs(
    q_ptr, k_ptr, v_ptr, o_ptr, length, dk, dv,
    BT: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    first = tl.program_id(1).to(tl.int64) * length
    d = tl.arange(0, BD)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    start = tl.program_id(2) * BT
    q = rows_of(q_ptr, first, start, length, dk, d, BT)
    o = tl.zeros([BT, BV], tl.float32)
    for before in range(0, start + BT, BT):
        k = rows_of(k_ptr, first, before, length, dk, d, BT)
        v = rows_of(v_ptr, first, before, length, dv, j, BT)
        o += within(q, k, v, start, before, BT, PRECISION)
    write(o_ptr, o, first, start, length, dv, j, BT)


@triton.jit
def summarise(
    k_ptr, v_ptr, s_ptr, length, dk, dv,
    BT: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    first = tl.program_id(1).to(tl.int64) * length
    d = tl.arange(0, BD)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    start = tl.program_id(2) * BT
    k = rows_of(k_ptr, first, start, length, dk, d, BT)
    v = rows_of(v_ptr, first, start, length, dv, j, BT)
    chunk = tl.program_id(1).to(tl.int64) * tl.num_programs(2) + tl.program_id(2)
    at = (chunk * dk + d[:, None]) * dv + j[None, :]
    tl.store(s_ptr + at, tl.dot(tl.trans(k), v, input_precision=PRECISION), mask=(d[:, None] < dk) & (j[None, :] < dv))


@triton.jit
def finish(
    q_ptr, k_ptr, v_ptr, sums_ptr, o_ptr, length, dk, dv,
    BT: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr,
):
    first = tl.program_id(1).to(tl.int64) * length
    d = tl.arange(0, BD)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    start = tl.program_id(2) * BT
    q = rows_of(q_ptr, first, start, length, dk, d, BT)
    k = rows_of(k_ptr, first, start, length, dk, d, BT)
    v = rows_of(v_ptr, first, start, length, dv, j, BT)
    chunk = tl.program_id(1).to(tl.int64) * tl.num_programs(2) + tl.program_id(2)
    there = (d[:, None] < tl.where(start > 0, dk, 0)) & (j[None, :] < dv)
    state = tl.load(sums_ptr + ((chunk - 1) * dk + d[:, None]) * dv + j[None, :], mask=there, other=0.0)
    o = within(q, k, v, start, start, BT, PRECISION) + tl.dot(q, state, input_precision=PRECISION)
    write(o_ptr, o, first, start, length, dv, j, BT)


def custom_kernel(data):
    q, k, v = data
    (heads, length, dk), dv = q.shape, v.shape[2]
    o = torch.empty_like(v)
    sizes = {"BT": BT, "BD": max(16, triton.next_power_of_2(dk)), "BV": BV, "PRECISION": PRECISION, "num_warps": WARPS}
    across, chunks = triton.cdiv(dv, BV), triton.cdiv(length, BT)
    if METHOD == "carry":
        carry[(across, heads)](q, k, v, o, length, dk, dv, **sizes)
    elif METHOD == "pairs":
        pairs[(across, heads, chunks)](q, k, v, o, length, dk, dv, **sizes)
    else:
        s = torch.empty((heads, chunks, dk, dv), dtype=v.dtype, device=v.device)
        summarise[(across, heads, chunks)](k, v, s, length, dk, dv, **sizes)
        finish[(across, heads, chunks)](q, k, v, s.cumsum(1), o, length, dk, dv, **sizes)
    return o
