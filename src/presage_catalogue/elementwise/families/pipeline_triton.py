# presage: tune BLOCK = 1024, 256, 4096
# presage: tune WARPS = 4, 1, 8
# presage: tune PROGRAMS = 264, 132, 1056
# presage: tune STAGES = 3, 1, 5
#
# PROGRAMS walk over the blocks of elements; the loop is pipelined with STAGES of loads under way.
import torch
import triton
import triton.language as tl

$helpers$


@triton.jit
def over_stages($pointers$, n, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    for block in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0), num_stages=STAGES):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        $load$
        $apply$
        $store$


def custom_kernel(data):
    $ins$, = data
    $empty$
    n = $first$.numel()
    grid = (min(triton.cdiv(n, BLOCK), PROGRAMS),)
    over_stages[grid]($ins$, $outs$, n, STAGES=STAGES, BLOCK=BLOCK, num_warps=WARPS)
    return $outs$
