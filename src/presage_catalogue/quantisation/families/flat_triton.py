# presage: tune BLOCK = 1024, 256, 512, 2048, 8192
# presage: tune WARPS = 4, 1, 8
# presage: tune PROGRAMS = 0, 132, 1056
# presage: tune TAIL = 1, 0
# presage: where TAIL == 1 or (PROGRAMS == 0 and WARPS == 4)
#
# A program recodes BLOCK neighbouring elements, or PROGRAMS of them walk over all. TAIL is the last, partial block.
import torch
import triton
import triton.language as tl


@triton.jit
def over_elements($pointers$, $sizes$, total, shares, wide, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), shares, tl.num_programs(0)):
        place = block * BLOCK + tl.arange(0, BLOCK)
        inside = place < total
        row_inside = inside
        col_inside = inside
        r = place // wide
        c = place % wide
        v = tl.load($source$_ptr + place, mask=inside)
        $recode$


def custom_kernel(data):
    $ins$, = data
    $recode_unpack$
    $empty$
    total = $source$.numel()
    shares = triton.cdiv(total, BLOCK) if TAIL else total // BLOCK
    grid = (min(shares, PROGRAMS) if PROGRAMS else shares,)
    if shares > 0:
        over_elements[grid]($ins$, $out$, $sizes$, total, shares, $width$, BLOCK=BLOCK, num_warps=WARPS)
    return $out$
