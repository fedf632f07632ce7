# presage: tune HEADS = 8, 1, 4, 32
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune LOOP = 0, 1
# presage: tune STAGES = 1, 2
# presage: where LOOP == 1 or STAGES == 1
#
# A program turns HEADS heads of one token together, or all of them, HEADS at a time, with LOOP and up to STAGES of the
# loads in flight: the token's cosines and sines are read once.
import torch
import triton
import triton.language as tl


@triton.jit
def turn(
    x_ptr, cosines_ptr, sines_ptr, y_ptr, seq, heads, half_dim, span,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, STAGES: tl.constexpr,
):
    token = tl.program_id(0)
    k = tl.arange(0, WIDTH)[None, :]
    angle = token % seq * half_dim + k
    cosine = tl.load(cosines_ptr + angle, mask=k < half_dim)
    sine = tl.load(sines_ptr + angle, mask=k < half_dim)
    first_head = tl.program_id(1) * span
    for start in tl.range(first_head, tl.minimum(first_head + span, heads), HEADS, num_stages=STAGES):
        h = start + tl.arange(0, HEADS)[:, None]
        inside = (h < heads) & (k < half_dim)
        row = (token * heads + h) * 2 * half_dim
        a = tl.load(x_ptr + row + $first$, mask=inside).to(tl.float32)
        b = tl.load(x_ptr + row + $second$, mask=inside).to(tl.float32)
        tl.store(y_ptr + row + $first$, a * cosine - b * sine, mask=inside)
        tl.store(y_ptr + row + $second$, b * cosine + a * sine, mask=inside)


def custom_kernel(data):
    x, cosines, sines = data
    batch, seq, heads, dim = x.shape
    y = torch.empty_like(x)
    half_dim = dim // 2
    span = heads if LOOP else HEADS
    width = triton.next_power_of_2(half_dim)
    grid = (batch * seq, triton.cdiv(heads, span))
    turn[grid](
        x, cosines, sines, y, seq, heads, half_dim, span, HEADS=HEADS, WIDTH=width, STAGES=STAGES, num_warps=WARPS
    )
    return y
