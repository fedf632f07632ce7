# presage: problem vector_add
# presage: tune BLOCK = 1024, 256, 512, 2048, 4096, 8192
# presage: tune WARPS = 4, 1, 2, 8, 16
# presage: tune PROGRAMS = 0, 1056
#
# One program per BLOCK elements, or, where PROGRAMS is not 0, that many programs that walk over the blocks.
import torch
import triton
import triton.language as tl


@triton.jit
def add_block(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(z_ptr + at, x + y, mask=inside)


@triton.jit
def add_walking(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        x = tl.load(x_ptr + at, mask=inside)
        y = tl.load(y_ptr + at, mask=inside)
        tl.store(z_ptr + at, x + y, mask=inside)


def custom_kernel(data):
    x, y = data
    z = torch.empty_like(x)
    n = x.numel()
    blocks = triton.cdiv(n, BLOCK)
    if PROGRAMS:
        add_walking[(min(PROGRAMS, blocks),)](x, y, z, n, BLOCK=BLOCK, num_warps=WARPS)
    else:
        add_block[(blocks,)](x, y, z, n, BLOCK=BLOCK, num_warps=WARPS)
    return z
