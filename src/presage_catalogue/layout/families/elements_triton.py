# presage: tune BLOCK = 1024, 256, 512, 2048, 4096
# presage: tune WARPS = 4, 1, 8
# presage: tune PROGRAMS = 0, 264, 2112
# presage: tune TAIL = 1, 0
# presage: where TAIL == 1 or (PROGRAMS == 0 and WARPS == 4)
#
# A program makes BLOCK neighbouring elements of y, or PROGRAMS of them walk over all blocks. TAIL is the last, partial
# block.
import torch
import triton
import triton.language as tl


@triton.jit
def over_elements($pointers$, $sizes$, total, blocks, out_cols, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        inside = i < total
        row_inside = inside
        col_inside = inside
        r = i // out_cols
        c = i % out_cols
        $fetch$
        tl.store($out$_ptr + i, value, mask=inside)


def custom_kernel(data):
    $unpack$
    $empty$
    total = $out$.numel()
    blocks = triton.cdiv(total, BLOCK) if TAIL else total // BLOCK
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    if blocks > 0:
        over_elements[grid]($ins$, $out$, $sizes$, total, blocks, $cols$, BLOCK=BLOCK, num_warps=WARPS)
    return $out$
