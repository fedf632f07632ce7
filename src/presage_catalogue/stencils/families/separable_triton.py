# presage: tune TH = 4, 1, 8, 16
# presage: tune TW = 128, 64, 256, 512
# presage: tune WARPS = 4, 2, 8
# presage: tune FIRST = 0, 1
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 2048
#
# Two launches, one sums along rows and one along columns, with the first's results in memory between them. FIRST is the
# axis of the first. A program computes TH by TW points.
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(plane_ptr, y, x, h, w, inside, EDGE: tl.constexpr):
    $fetch$


@triton.jit
def sum_along(u_ptr, out_ptr, h, w, DOWN: tl.constexpr, TH: tl.constexpr, TW: tl.constexpr):
    across = tl.cdiv(w, TW)
    down = tl.cdiv(h, TH)
    image = tl.program_id(0) // (across * down)
    y = tl.program_id(0) // across % down * TH + tl.arange(0, TH)[:, None]
    x = tl.program_id(0) % across * TW + tl.arange(0, TW)[None, :]
    inside = (y < h) & (x < w)
    plane_ptr = u_ptr + image * h * w
    value = $along$
    tl.store(out_ptr + (image * h + y) * w + x, value, mask=inside)


def custom_kernel(data):
    u, = data
    n, h, w = u.shape
    middle, out = torch.empty_like(u), torch.empty_like(u)
    grid = (n * triton.cdiv(h, TH) * triton.cdiv(w, TW),)
    sum_along[grid](u, middle, h, w, DOWN=FIRST, TH=TH, TW=TW, num_warps=WARPS)
    sum_along[grid](middle, out, h, w, DOWN=1 - FIRST, TH=TH, TW=TW, num_warps=WARPS)
    return out
