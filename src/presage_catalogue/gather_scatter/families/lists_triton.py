# presage: tune BJ = 16, 1, 4, 64
# presage: tune BN = 128, 32, 256
# presage: tune WARPS = 4, 1, 8
# presage: tune LATE = 1, 0
# presage: tune STAGES = 1, 3
# presage: where BJ * BN >= 32 * WARPS and BJ * BN <= 8192
# presage: where BJ > 1 or LATE == 1
#
# A program adds up BN columns of one list, BJ rows at a time with up to STAGES of the loads in flight: into as many sums,
# which meet at the end (LATE), or at once.
import torch
import triton
import triton.language as tl


@triton.jit
def add_up($pointers$, $sizes$, BJ: tl.constexpr, BN: tl.constexpr, LATE: tl.constexpr, STAGES: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    begin = $list_begin$
    end = $list_end$
    tall = tl.zeros([BJ, BN], tl.float32)
    flat = tl.zeros([BN], tl.float32)
    for start in tl.range(begin, end, BJ, num_stages=STAGES):
        j = start + tl.arange(0, BJ)
        row = $list_row$
        v = tl.load(x_ptr + row[:, None] * dim + c[None, :], mask=(j[:, None] < end) & (c[None, :] < dim), other=0.0)
        if LATE:
            tall += v
        else:
            flat += tl.sum(v, axis=0)
    if LATE:
        flat = tl.sum(tall, axis=0)
    tl.store(y_ptr + r * dim + c, flat, mask=c < dim)


def custom_kernel(data):
    $unpack$
    lists = $list_count$
    $empty$
    add_up[(lists, triton.cdiv(dim, BN))](
        $ins$, y, $sizes$, BJ=BJ, BN=BN, LATE=LATE, STAGES=STAGES, num_warps=WARPS
    )
    return y
