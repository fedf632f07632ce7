# presage: problem swiglu_mlp
# presage: tune PRECISION = ieee, tf32x3
# presage: tune BM = 32, 16, 64
# presage: tune BF = 32, 16, 64
# presage: tune BD = 64, 32, 128
# presage: tune PARTS = 1, 8
# presage: tune WARPS = 4, 8
# presage: where BM * BF <= 2048 and BM * BD <= 4096 and BM * BF >= 128 * WARPS and (WARPS == 4 or BM != 16) and (PARTS == 1 or BF != 16)
#
# A program computes BM tokens and one block of BD result columns from one of PARTS parts of the hidden columns, of which
# it computes BF at a time; every program of the same tokens computes them anew. The parts are added up in memory.
import torch
import triton
import triton.language as tl


@triton.jit
def fused(
    x_ptr, w1_ptr, w3_ptr, w2_ptr, y_ptr, tokens, d, f, wide,
    BM: tl.constexpr, BF: tl.constexpr, BD: tl.constexpr, PARTS: tl.constexpr, PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    col = tl.program_id(1) * BD + tl.arange(0, BD)[None, :]
    begin = tl.program_id(2) * wide
    end = tl.minimum(begin + wide, f)
    y = tl.zeros([BM, BD], tl.float32)
    for start in range(begin, end, BF):
        j = start + tl.arange(0, BF)
        a = tl.zeros([BM, BF], tl.float32)
        b = tl.zeros([BM, BF], tl.float32)
        for from_p in range(0, d, 32):
            p = from_p + tl.arange(0, 32)
            x = tl.load(x_ptr + row * d + p[None, :], mask=(row < tokens) & (p[None, :] < d), other=0.0)
            there = (p[:, None] < d) & (j[None, :] < end)
            w1 = tl.load(w1_ptr + p[:, None] * f + j[None, :], mask=there, other=0.0)
            w3 = tl.load(w3_ptr + p[:, None] * f + j[None, :], mask=there, other=0.0)
            a += tl.dot(x, w1, input_precision=PRECISION)
            b += tl.dot(x, w3, input_precision=PRECISION)
        w2 = tl.load(w2_ptr + j[:, None] * d + col, mask=(j[:, None] < end) & (col < d), other=0.0)
        y += tl.dot(a / (1.0 + tl.exp(-a)) * b, w2, input_precision=PRECISION)
    inside = (row < tokens) & (col < d)
    if PARTS == 1:
        tl.store(y_ptr + row * d + col, y, mask=inside)
    else:
        tl.atomic_add(y_ptr + row * d + col, y, mask=inside)


def custom_kernel(data):
    x, w1, w3, w2 = data
    (tokens, d), f = x.shape, w1.shape[1]
    y = torch.empty_like(x) if PARTS == 1 else torch.zeros_like(x)
    fused[(triton.cdiv(tokens, BM), triton.cdiv(d, BD), PARTS)](
        x, w1, w3, w2, y, tokens, d, f, triton.cdiv(f, PARTS),
        BM=BM, BF=BF, BD=BD, PARTS=PARTS, PRECISION=PRECISION, num_warps=WARPS,
    )
    return y
