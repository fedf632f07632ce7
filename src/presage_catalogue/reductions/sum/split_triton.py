# presage: problem sum
# presage: tune PARTS = 2, 4, 8, 32
# presage: tune BLOCK = 1024, 512, 2048
# presage: tune WARPS = 4, 8
#
# PARTS programs share a row and leave their sums in memory; a second launch adds those up.
import torch
import triton
import triton.language as tl


@triton.jit
def part_sums(x_ptr, partial_ptr, cols, share, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) // PARTS
    first = tl.program_id(0) % PARTS * share
    end = tl.minimum(first + share, cols)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(first, end, BLOCK):
        col = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + row * cols + col, mask=col < end, other=0.0)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(sums, axis=0))


@triton.jit
def add_parts(partial_ptr, y_ptr, rows, PARTS: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    partial = tl.load(partial_ptr + row[:, None] * PARTS + tl.arange(0, PARTS)[None, :], mask=row[:, None] < rows)
    tl.store(y_ptr + row, tl.sum(partial, axis=1), mask=row < rows)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty(rows, dtype=x.dtype, device=x.device)
    partial = torch.empty(rows * PARTS, dtype=x.dtype, device=x.device)
    # A multiple of 16 tells the compiler that loads are aligned.
    share = triton.cdiv(triton.cdiv(cols, PARTS), 16) * 16
    part_sums[(rows * PARTS,)](x, partial, cols, share, PARTS=PARTS, BLOCK=BLOCK, num_warps=WARPS)
    add_parts[(triton.cdiv(rows, 64),)](partial, y, rows, PARTS=PARTS, ROWS=64, num_warps=2)
    return y
