# presage: tune TH = $tile_rows$
# presage: tune TW = 128, 16, 32, 64, 256, 512
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune ORDER = 0, 1
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 2048
#
# A program computes TH by TW outputs of one plane; the shifted copies of x come from cache. Programs that follow each
# other go along a plane (ORDER 0) or from plane to plane (1).
import torch
import triton
import triton.language as tl


@triton.jit
def convolve(
    x_ptr, weight_ptr, bias_ptr, y_ptr, planes, c, h, w,
    ROWS: tl.constexpr, COLS: tl.constexpr, ABOVE: tl.constexpr, LEFT: tl.constexpr,
    TH: tl.constexpr, TW: tl.constexpr, ORDER: tl.constexpr,
):
    across = tl.cdiv(w, TW)
    tiles = across * tl.cdiv(h, TH)
    if ORDER:
        plane = tl.program_id(0) % planes
        tile = tl.program_id(0) // planes
    else:
        plane = tl.program_id(0) // tiles
        tile = tl.program_id(0) % tiles
    channel = plane % c
    row = tile // across * TH + tl.arange(0, TH)[:, None]
    col = tile % across * TW + tl.arange(0, TW)[None, :]
    inside = (row < h) & (col < w)
    from_ptr = x_ptr + plane * h * w
    total = tl.zeros([TH, TW], tl.float32)
    for u in tl.static_range(ROWS):
        for v in tl.static_range(COLS):
            p = row + u - ABOVE
            q = col + v - LEFT
            there = inside & (p >= 0) & (p < h) & (q >= 0) & (q < w)
            x = tl.load(from_ptr + p * w + q, mask=there, other=0.0)
            total += x * tl.load(weight_ptr + (channel * ROWS + u) * COLS + v)
    $silu$
    tl.store(y_ptr + (plane * h + row) * w + col, total, mask=inside)


def custom_kernel(data):
    $ins$, = data
    n, c = x.shape[:2]
    h, w = x.shape[2:] if x.dim() == 4 else (1, x.shape[2])
    rows, cols, above, left = $filter$
    y = torch.empty_like(x)
    grid = (n * c * triton.cdiv(h, TH) * triton.cdiv(w, TW),)
    convolve[grid](
        x, weight, $bias$, y, n * c, c, h, w,
        ROWS=rows, COLS=cols, ABOVE=above, LEFT=left, TH=TH, TW=TW, ORDER=ORDER, num_warps=WARPS,
    )
    return y
