# presage: tune GROUPS = 1, 2, 8, 32
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune DIVIDE = 1, 0
# presage: tune LEAST = 1, 0
# presage: where LEAST == 1 or (WARPS == 4 and DIVIDE == 1)
#
# A program takes GROUPS whole groups at once. DIVIDE 0 multiplies by the scale's reciprocal; LEAST holds the scale above
# 1e-10.
import torch
import triton
import triton.language as tl


@triton.jit
def quantise(
    x_ptr, codes_ptr, scales_ptr, groups, width,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, DIVIDE: tl.constexpr, LEAST: tl.constexpr,
):
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    c = tl.arange(0, WIDTH)[None, :]
    inside = (g[:, None] < groups) & (c < width)
    place = g[:, None] * width + c
    x = tl.load(x_ptr + place, mask=inside, other=0.0)
    largest = tl.max(tl.abs(x), axis=1)
    if LEAST:
        largest = tl.maximum(largest, 1e-10)
    scale = largest / $limit$
    if DIVIDE:
        v = x / scale[:, None]
    else:
        v = x * (1.0 / scale)[:, None]
    code = $encode$
    tl.store(codes_ptr + place, code, mask=inside)
    tl.store(scales_ptr + g, scale, mask=g < groups)


$group_arrays$
    grid = (triton.cdiv(groups, GROUPS),)
    quantise[grid](
        x, codes, scales, groups, width,
        GROUPS=GROUPS, WIDTH=triton.next_power_of_2(width), DIVIDE=DIVIDE, LEAST=LEAST, num_warps=WARPS,
    )
    return codes, scales
