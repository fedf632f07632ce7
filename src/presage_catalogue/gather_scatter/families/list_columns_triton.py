# presage: tune BN = 64, 16, 128, 512
# presage: tune UNROLL = 1, 4
# presage: tune WARPS = 1, 2, 4
# presage: where BN >= 16 * WARPS
#
# A program goes through one list row by row, BN columns of each, with UNROLL rows' loads ahead of their sums.
import torch
import triton
import triton.language as tl


@triton.jit
def go_through($pointers$, $sizes$, BN: tl.constexpr, UNROLL: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    begin = $list_begin$
    end = $list_end$
    total = tl.zeros([BN], tl.float32)
    for start in range(begin, end, UNROLL):
        for u in tl.static_range(UNROLL):
            j = start + u + tl.zeros([1], tl.int32)
            row = $list_row$
            total += tl.load(x_ptr + row * dim + c, mask=(c < dim) & (j < end), other=0.0)
    tl.store(y_ptr + r * dim + c, total, mask=c < dim)


def custom_kernel(data):
    $unpack$
    lists = $list_count$
    $empty$
    go_through[(lists, triton.cdiv(dim, BN))]($ins$, y, $sizes$, BN=BN, UNROLL=UNROLL, num_warps=WARPS)
    return y
