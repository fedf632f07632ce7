# presage: tune TH = $triton_rows$
# presage: tune TW = 64, 32, 128, 256
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune HINT = none, streaming
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 1024
#
# A program computes TH by TW outputs of one plane, each from all elements of its window. HINT says whether the outputs
# are likely to be read again soon.
import torch
import triton
import triton.language as tl


@triton.jit
def pool(
    x_ptr, y_ptr, h, w, rows, cols,
    HIGH: tl.constexpr, WIDE: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, TH: tl.constexpr,
    TW: tl.constexpr, STREAMING: tl.constexpr,
):
    COUNT: tl.constexpr = HIGH * WIDE
    tiles_across = tl.cdiv(cols, TW)
    tiles_down = tl.cdiv(rows, TH)
    q = tl.program_id(0) % tiles_across * TW + tl.arange(0, TW)[None, :]
    p = tl.program_id(0) // tiles_across % tiles_down * TH + tl.arange(0, TH)[:, None]
    image = tl.program_id(0) // (tiles_across * tiles_down)
    inside = (p < rows) & (q < cols)
    corner_ptr = x_ptr + (image * h + p * DOWN) * w + q * ACROSS
    state = tl.full([TH, TW], $start$, tl.float32)
    for u in tl.static_range(HIGH):
        for v in tl.static_range(WIDE):
            x = tl.load(corner_ptr + u * w + v, mask=inside, other=0.0)
            state = $take$
    place_ptr = y_ptr + (image * rows + p) * cols + q
    tl.store(place_ptr, $finish$, mask=inside, cache_modifier=".cs" if STREAMING else "")


$window_sizes$
    pool[(n * c * triton.cdiv(rows, TH) * triton.cdiv(cols, TW),)](
        x, y, h, w, rows, cols, HIGH=high, WIDE=window, DOWN=down, ACROSS=stride, TH=TH, TW=TW,
        STREAMING=HINT == "streaming", num_warps=WARPS,
    )
    return y.view($shape$)
