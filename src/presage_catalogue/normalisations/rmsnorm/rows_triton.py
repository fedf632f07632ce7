# presage: problem rmsnorm
# presage: tune LONG = 8192, 1024, 2048, 4096
# presage: tune ROWS = 1, 2, 4
# presage: tune WARPS = 4, 8, 16
#
# Rows of up to LONG columns are held whole, ROWS of them per program. A longer row is read in blocks of LONG, once for
# its sum of squares and, from cache, once for the result.
import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_whole(x_ptr, weight_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr, HEIGHT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
    weight = tl.load(weight_ptr + col, mask=col < cols)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True) / cols + 1e-6)
    tl.store(y_ptr + row * cols + col, x * scale * weight, mask=inside)


@triton.jit
def rmsnorm_blocks(x_ptr, weight_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + first + lane, mask=first + lane < cols, other=0.0)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + 1e-6)
    for first in range(0, cols, BLOCK):
        inside = first + lane < cols
        x = tl.load(x_ptr + start + first + lane, mask=inside)
        weight = tl.load(weight_ptr + first + lane, mask=inside)
        tl.store(y_ptr + start + first + lane, x * scale * weight, mask=inside)


def custom_kernel(data):
    x, weight = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    if cols <= LONG:
        grid, block = (triton.cdiv(rows, ROWS),), triton.next_power_of_2(cols)
        rmsnorm_whole[grid](x, weight, y, rows, cols, BLOCK=block, HEIGHT=ROWS, num_warps=WARPS)
    else:
        rmsnorm_blocks[(rows,)](x, weight, y, cols, BLOCK=LONG, num_warps=WARPS)
    return y
