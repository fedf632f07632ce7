# presage: tune BLOCK = 1024, 128, 256, 512, 2048, 4096
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune PROGRAMS = 0, 528, 2112
# presage: where BLOCK >= 32 * WARPS and BLOCK <= 1024 * WARPS
#
# A program computes BLOCK outputs that follow each other in memory, or PROGRAMS of them walk over the blocks.
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(u_ptr, image, y, x, h, w, inside, dy, dx):
    y = tl.minimum(tl.maximum(y + dy, 0), h - 1)
    x = tl.minimum(tl.maximum(x + dx, 0), w - 1)
    return tl.load(u_ptr + (image * h + y) * w + x, mask=inside, other=0.0)


@triton.jit
def upsample(u_ptr, out_ptr, size, h, w, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        q = at % (2 * w)
        p = at // (2 * w) % (2 * h)
        image = at // (4 * h * w)
        y = p // 2
        x = q // 2
        a = p % 2
        b = q % 2
        $upsample$
        tl.store(out_ptr + at, value, mask=inside)


def custom_kernel(data):
    u, = data
    n, h, w = u.shape
    out = torch.empty((n, 2 * h, 2 * w), dtype=u.dtype, device=u.device)
    blocks = triton.cdiv(out.numel(), BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    upsample[grid](u, out, out.numel(), h, w, BLOCK=BLOCK, num_warps=WARPS)
    return out
