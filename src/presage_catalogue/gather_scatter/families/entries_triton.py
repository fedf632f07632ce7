# presage: tune BM = 64, 8, 128, 512
# presage: tune BK = 4, 1, 16, 64
# presage: tune WARPS = 4, 1, 8
# presage: tune LATE = 1, 0
# presage: where BM * BK >= 32 * WARPS and BM * BK <= 8192
# presage: where BK > 1 or LATE == 1
#
# A program takes BM rows, BK entries of each at a time, until the longest is through: into as many sums, which meet at
# the end (LATE), or at once.
import torch
import triton
import triton.language as tl


@triton.jit
def products($pointers$, $sizes$, BM: tl.constexpr, BK: tl.constexpr, LATE: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    begin = $entry_begin$
    end = $entry_end$
    longest = $entry_longest$
    wide = tl.zeros([BM, BK], tl.float32)
    flat = tl.zeros([BM], tl.float32)
    for start in range(0, longest, BK):
        k = start + tl.arange(0, BK)
        j = begin[:, None] + k[None, :] * $entry_step$
        inside = (r[:, None] < rows) & (j < end[:, None])
        value = tl.load(values_ptr + j, mask=inside, other=0.0)
        column = tl.load(columns_ptr + j, mask=inside, other=0)
        product = value * tl.load(x_ptr + column, mask=inside, other=0.0)
        if LATE:
            wide += product
        else:
            flat += tl.sum(product, axis=1)
    if LATE:
        flat = tl.sum(wide, axis=1)
    tl.store(y_ptr + r, flat, mask=r < rows)


def custom_kernel(data):
    $unpack$
    rows = $entry_rows$
    $empty$
    products[(triton.cdiv(rows, BM),)]($ins$, y, $sizes$, BM=BM, BK=BK, LATE=LATE, num_warps=WARPS)
    return y
