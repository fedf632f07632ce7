# presage: tune BLOCK = 1024, 256, 4096
# presage: tune WARPS = 4, 8, 1
# presage: tune PROGRAMS = 1056, 264, 4224
# presage: tune FIRST = 0, 1
#
# PROGRAMS programs walk over x as one long row, BLOCK elements at a time, and add each to its place. FIRST 0 clears the
# result before; 1 lets PyTorch do the same by filling it.
import torch
import triton
import triton.language as tl


@triton.jit
def walk(x_ptr, indices_ptr, y_ptr, total, width, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, total, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < total
        target = tl.load(indices_ptr + i // width, mask=inside, other=0)
        tl.atomic_add(y_ptr + target * width + i % width, tl.load(x_ptr + i, mask=inside), mask=inside, sem="relaxed")


@triton.jit
def clear(y_ptr, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.zeros([BLOCK], tl.float32), mask=i < total)


def custom_kernel(data):
    x, indices, targets = data
    y = torch.empty(($scatter_shape$,), dtype=torch.float32, device=x.device)
    if FIRST:
        y.zero_()
    else:
        clear[(triton.cdiv(y.numel(), BLOCK),)](y, y.numel(), BLOCK=BLOCK, num_warps=WARPS)
    grid = (min(PROGRAMS, triton.cdiv(x.numel(), BLOCK)),)
    walk[grid](x, indices, y, x.numel(), $scatter_width$, BLOCK=BLOCK, num_warps=WARPS)
    return y
