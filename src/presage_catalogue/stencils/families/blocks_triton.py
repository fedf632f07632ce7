# presage: tune BLOCK = 1024, 128, 256, 512, 2048, 4096
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune PROGRAMS = 0, 528, 2112
# presage: tune EDGE = 0, 1
# presage: where BLOCK >= 32 * WARPS and BLOCK <= 1024 * WARPS and (EDGE == 0 or PROGRAMS == 0 and WARPS <= 2)
#
# A program computes BLOCK points that follow each other in memory, or PROGRAMS of them walk over the blocks. Neighbours
# come from the caches. EDGE 0 looks at a neighbour's row and column, 1 at its place in the flattened image.
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(plane_ptr, y, x, h, w, inside, EDGE: tl.constexpr):
    if EDGE == 1:
        $flat$
    else:
        $fetch$


@triton.jit
def over_blocks($pointers$, size, h, w, BLOCK: tl.constexpr, EDGE: tl.constexpr):
    $prepare$
    for block in range(tl.program_id(0), tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        x = at % w
        y = at // w % h
        plane_ptr = u_ptr + at // (h * w) * (h * w)
        $formula$
        tl.store(out_ptr + at, value, mask=inside)


def custom_kernel(data):
    $ins$, = data
    h, w = u.shape[1:]
    out = torch.empty_like(u)
    size = u.numel()
    blocks = triton.cdiv(size, BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    over_blocks[grid]($ins$, out, size, h, w, BLOCK=BLOCK, EDGE=EDGE, num_warps=WARPS)
    return out
