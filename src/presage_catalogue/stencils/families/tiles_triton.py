# presage: tune TH = 4, 1, 2, 8, 16, 32
# presage: tune TW = 128, 32, 64, 256, 512
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune ORDER = 0, 1
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 512 * WARPS and TH * TW <= 2048
#
# A program computes TH by TW points; their neighbours come from the caches. Programs that follow each other go along
# the rows of tiles (ORDER 0) or down the columns (1).
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(plane_ptr, y, x, h, w, inside, EDGE: tl.constexpr):
    $fetch$


@triton.jit
def over_tiles($pointers$, h, w, TH: tl.constexpr, TW: tl.constexpr, ORDER: tl.constexpr):
    EDGE: tl.constexpr = 0
    $prepare$
    across = tl.cdiv(w, TW)
    down = tl.cdiv(h, TH)
    tile = tl.program_id(0) % (across * down)
    image = tl.program_id(0) // (across * down)
    if ORDER:
        y = tile % down * TH + tl.arange(0, TH)[:, None]
        x = tile // down * TW + tl.arange(0, TW)[None, :]
    else:
        y = tile // across * TH + tl.arange(0, TH)[:, None]
        x = tile % across * TW + tl.arange(0, TW)[None, :]
    inside = (y < h) & (x < w)
    plane_ptr = u_ptr + image * h * w
    at = (image * h + y) * w + x
    $formula$
    tl.store(out_ptr + at, value, mask=inside)


def custom_kernel(data):
    $ins$, = data
    n, h, w = u.shape
    out = torch.empty_like(u)
    grid = (n * triton.cdiv(h, TH) * triton.cdiv(w, TW),)
    over_tiles[grid]($ins$, out, h, w, TH=TH, TW=TW, ORDER=ORDER, num_warps=WARPS)
    return out
