# presage: tune BLOCK = 1024, 64, 256, 2048, 8192
# presage: tune WARPS = 4, 1, 8, 16
# presage: tune PROGRAMS = 0, 132, 1056
# presage: where BLOCK <= 4096 or WARPS > 1
#
# A program per block of elements, or PROGRAMS of them that walk over the blocks.
import torch
import triton
import triton.language as tl

$helpers$


@triton.jit
def over_blocks($pointers$, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        $load$
        $apply$
        $store$


def custom_kernel(data):
    $ins$, = data
    $empty$
    n = $first$.numel()
    blocks = triton.cdiv(n, BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    over_blocks[grid]($ins$, $outs$, n, BLOCK=BLOCK, num_warps=WARPS)
    return $outs$
