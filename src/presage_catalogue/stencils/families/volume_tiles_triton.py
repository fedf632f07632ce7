# presage: tune TH = 4, 1, 2, 8, 16
# presage: tune TW = 64, 32, 128, 256
# presage: tune DEPTH = 1, 4, 16
# presage: tune WARPS = 4, 2, 8
# presage: tune EDGE = 1, 0
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 512 * WARPS and TH * TW <= 2048
# presage: where EDGE == 1 or DEPTH == 1 and WARPS == 4
#
# A program computes TH by TW points of DEPTH planes, one after the other; their neighbours come from the caches. EDGE
# looks at a neighbour's place in each axis; without it, at its place in the flattened volume.
import torch
import triton
import triton.language as tl

EDGES = tl.constexpr(EDGE)


@triton.jit
def fetch(plane_ptr, z, y, x, d, h, w, inside):
    at = (z * h + y) * w + x
    if EDGES:
        inside = inside & (z >= 0) & (z < d) & (y >= 0) & (y < h) & (x >= 0) & (x < w)
    else:
        inside = inside & (at >= 0) & (at < d * h * w)
    return tl.load(plane_ptr + at, mask=inside, other=0.0)


@triton.jit
def over_tiles(
    u_ptr, out_ptr, d, h, w, TH: tl.constexpr, TW: tl.constexpr, DEPTH: tl.constexpr
):
    across = tl.cdiv(w, TW)
    down = tl.cdiv(h, TH)
    slabs = tl.cdiv(d, DEPTH)
    slab = tl.program_id(0) // (across * down)
    y = tl.program_id(0) // across % down * TH + tl.arange(0, TH)[:, None]
    x = tl.program_id(0) % across * TW + tl.arange(0, TW)[None, :]
    plane_ptr = u_ptr + slab // slabs * d * h * w
    to_ptr = out_ptr + slab // slabs * d * h * w
    for i in range(DEPTH):
        z = slab % slabs * DEPTH + i + tl.zeros_like(y)
        inside = (y < h) & (x < w) & (z < d)
        $volume$
        tl.store(to_ptr + (z * h + y) * w + x, value, mask=inside)


def custom_kernel(data):
    u, = data
    n, d, h, w = u.shape
    out = torch.empty_like(u)
    grid = (n * triton.cdiv(d, DEPTH) * triton.cdiv(h, TH) * triton.cdiv(w, TW),)
    over_tiles[grid](u, out, d, h, w, TH=TH, TW=TW, DEPTH=DEPTH, num_warps=WARPS)
    return out
