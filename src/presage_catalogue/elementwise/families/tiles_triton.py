# presage: tune BLOCK = 1024, 128
# presage: tune UNROLL = 4, 2, 8
# presage: tune ORDER = 0, 1, 2
# presage: tune WARPS = 4, 1
# presage: where BLOCK < 1024 or WARPS > 1 or UNROLL < 8
#
# A program computes UNROLL blocks of elements, one after the other in the code: blocks that lie side by side (ORDER 0),
# that are a whole grid apart (1), or that take every UNROLL-th element of the same piece (2).
import torch
import triton
import triton.language as tl

$helpers$


@triton.jit
def over_tiles($pointers$, n, UNROLL: tl.constexpr, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    for u in tl.static_range(UNROLL):
        if ORDER == 0:
            at = (program * UNROLL + u) * BLOCK + tl.arange(0, BLOCK)
        elif ORDER == 1:
            at = (u * tl.num_programs(0) + program) * BLOCK + tl.arange(0, BLOCK)
        else:
            at = program * UNROLL * BLOCK + tl.arange(0, BLOCK) * UNROLL + u
        inside = at < n
        $load$
        $apply$
        $store$


def custom_kernel(data):
    $ins$, = data
    $empty$
    n = $first$.numel()
    grid = (triton.cdiv(n, BLOCK * UNROLL),)
    over_tiles[grid]($ins$, $outs$, n, UNROLL=UNROLL, ORDER=ORDER, BLOCK=BLOCK, num_warps=WARPS)
    return $outs$
