# presage: tune BLOCK = 1024, 128, 256, 512, 2048, 4096
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune PROGRAMS = 0, 528, 2112
# presage: where BLOCK >= 32 * WARPS and BLOCK <= 1024 * WARPS
#
# A program computes BLOCK points that follow each other in memory, or PROGRAMS of them walk over the blocks. Neighbours
# come from the caches.
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(plane_ptr, z, y, x, d, h, w, inside):
    inside = inside & (z >= 0) & (z < d) & (y >= 0) & (y < h) & (x >= 0) & (x < w)
    return tl.load(plane_ptr + (z * h + y) * w + x, mask=inside, other=0.0)


@triton.jit
def over_blocks(u_ptr, out_ptr, size, d, h, w, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        x = at % w
        y = at // w % h
        z = at // (w * h) % d
        plane_ptr = u_ptr + at // (d * h * w) * (d * h * w)
        $volume$
        tl.store(out_ptr + at, value, mask=inside)


def custom_kernel(data):
    u, = data
    d, h, w = u.shape[1:]
    out = torch.empty_like(u)
    size = u.numel()
    blocks = triton.cdiv(size, BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    over_blocks[grid](u, out, size, d, h, w, BLOCK=BLOCK, num_warps=WARPS)
    return out
