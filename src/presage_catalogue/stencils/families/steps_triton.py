# presage: tune TH = 4, 1, 2, 8, 16
# presage: tune TW = 128, 64, 256, 512
# presage: tune WARPS = 4, 2, 8
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 2048
#
# A launch for each step, with the result of the first in memory between them. A program computes TH by TW points.
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(plane_ptr, y, x, h, w, inside, EDGE: tl.constexpr):
    $fetch$


@triton.jit
def one_step(u_ptr, out_ptr, h, w, TH: tl.constexpr, TW: tl.constexpr):
    EDGE: tl.constexpr = 0
    across = tl.cdiv(w, TW)
    down = tl.cdiv(h, TH)
    image = tl.program_id(0) // (across * down)
    y = tl.program_id(0) // across % down * TH + tl.arange(0, TH)[:, None]
    x = tl.program_id(0) % across * TW + tl.arange(0, TW)[None, :]
    inside = (y < h) & (x < w)
    plane_ptr = u_ptr + image * h * w
    $step$
    tl.store(out_ptr + (image * h + y) * w + x, value, mask=inside)


def custom_kernel(data):
    u, = data
    n, h, w = u.shape
    middle, out = torch.empty_like(u), torch.empty_like(u)
    grid = (n * triton.cdiv(h, TH) * triton.cdiv(w, TW),)
    one_step[grid](u, middle, h, w, TH=TH, TW=TW, num_warps=WARPS)
    one_step[grid](middle, out, h, w, TH=TH, TW=TW, num_warps=WARPS)
    return out
