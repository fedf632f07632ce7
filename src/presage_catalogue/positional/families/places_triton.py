# presage: tune BLOCK = 1024, 256, 512, 2048, 8192
# presage: tune WARPS = 4, 1, 8
# presage: tune PROGRAMS = 0, 264, 2112
#
# A program adds to BLOCK neighbouring elements what belongs to their places, or PROGRAMS of them walk over all.
import torch
import triton
import triton.language as tl


@triton.jit
def over_elements(x_ptr, y_ptr, $sizes$, total, width, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(total, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        r = i // width
        c = i % width
        $term$
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < total) + term, mask=i < total)


def custom_kernel(data):
    (x,) = data
    $unpack$
    y = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    over_elements[grid](x, y, $sizes$, x.numel(), $cols$, BLOCK=BLOCK, num_warps=WARPS)
    return y
