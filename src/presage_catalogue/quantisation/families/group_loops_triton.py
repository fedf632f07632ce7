# presage: tune BM = 4, 1, 16
# presage: tune BN = 128, 64, 512, 1024
# presage: tune WARPS = 4, 1, 8
# presage: tune LATE = 1, 0
# presage: where BM * BN >= 32 * WARPS and BM * BN <= 8192
#
# A program goes through BM groups twice, BN numbers of each at a time. LATE compares lane by lane until the end of the
# first time, else across lanes at every step.
import torch
import triton
import triton.language as tl


@triton.jit
def quantise(
    x_ptr, codes_ptr, scales_ptr, groups, width, BM: tl.constexpr, BN: tl.constexpr, LATE: tl.constexpr
):
    g = tl.program_id(0) * BM + tl.arange(0, BM)
    wide = tl.zeros([BM, BN], tl.float32)
    largest = tl.zeros([BM], tl.float32) + 1e-10
    for start in range(0, width, BN):
        c = start + tl.arange(0, BN)[None, :]
        inside = (g[:, None] < groups) & (c < width)
        x = tl.abs(tl.load(x_ptr + g[:, None] * width + c, mask=inside, other=0.0))
        if LATE:
            wide = tl.maximum(wide, x)
        else:
            largest = tl.maximum(largest, tl.max(x, axis=1))
    if LATE:
        largest = tl.maximum(largest, tl.max(wide, axis=1))
    scale = largest / $limit$
    for start in range(0, width, BN):
        c = start + tl.arange(0, BN)[None, :]
        inside = (g[:, None] < groups) & (c < width)
        v = tl.load(x_ptr + g[:, None] * width + c, mask=inside, other=0.0) / scale[:, None]
        code = $encode$
        tl.store(codes_ptr + g[:, None] * width + c, code, mask=inside)
    tl.store(scales_ptr + g, scale, mask=g < groups)


$group_arrays$
    quantise[(triton.cdiv(groups, BM),)](
        x, codes, scales, groups, width, BM=BM, BN=BN, LATE=LATE, num_warps=WARPS
    )
    return codes, scales
