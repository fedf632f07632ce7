# presage: problem matvec
# presage: tune BM = 8, 1, 2, 4, 16, 64
# presage: tune BK = 512, 128, 256, 1024, 2048
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune PARTS = 1, 4, 16
# presage: where BM * BK >= 256 * WARPS and BM * BK <= 4096 * WARPS
# presage: where PARTS == 1 or (BM <= 8 and WARPS >= 4)
#
# A program has BM rows and one of PARTS of their terms, BK at a time; parts are added up atomically.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(a_ptr, x_ptr, y_ptr, m, k, share, PARTS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    a_ptr += row.to(tl.int64)[:, None] * k
    begin = tl.program_id(1) * share
    end = tl.minimum(begin + share, k)
    sums = tl.zeros([BM, BK], tl.float32)
    for start in range(begin, end, BK):
        p = start + tl.arange(0, BK)[None, :]
        a = tl.load(a_ptr + p, mask=(row[:, None] < m) & (p < end), other=0.0)
        sums += a * tl.load(x_ptr + p, mask=p < end, other=0.0)
    total = tl.sum(sums, 1)
    if PARTS == 1:
        tl.store(y_ptr + row, total, mask=row < m)
    else:
        tl.atomic_add(y_ptr + row, total, mask=row < m)


def custom_kernel(data):
    a, x = data
    m, k = a.shape
    make = torch.empty if PARTS == 1 else torch.zeros
    y = make((m,), dtype=a.dtype, device=a.device)
    share = triton.cdiv(k, PARTS * BK) * BK
    multiply[(triton.cdiv(m, BM), PARTS)](a, x, y, m, k, share, PARTS=PARTS, BM=BM, BK=BK, num_warps=WARPS)
    return y
