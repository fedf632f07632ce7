# presage: problem softmax
# presage: tune ROWS = 1, 2, 4
# presage: tune WARPS = 4, 8, 16
# presage: tune LONG = 4096, 8192
#
# Rows of up to LONG columns are held whole, ROWS of them per program. A longer row is read in blocks of LONG, once for
# its maximum and sum, which are found together, and once for the result.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_whole(x_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr, HEIGHT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=-float("inf"))
    # A row that lies outside is all -inf; its maximum must not become -inf - -inf.
    e = tl.exp(x - tl.maximum(tl.max(x, axis=1, keep_dims=True), -3.0e38))
    total = tl.sum(e, axis=1, keep_dims=True)
    tl.store(y_ptr + row * cols + col, e / total, mask=inside)


@triton.jit
def softmax_blocks(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], -3.0e38, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        col = first + lane
        x = tl.load(x_ptr + start + col, mask=col < cols, other=-float("inf"))
        bigger = tl.maximum(largest, x)
        total = total * tl.exp(largest - bigger) + tl.exp(x - bigger)
        largest = bigger
    row_max = tl.max(largest, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(largest - row_max), axis=0)
    for first in range(0, cols, BLOCK):
        col = first + lane
        x = tl.load(x_ptr + start + col, mask=col < cols, other=-float("inf"))
        tl.store(y_ptr + start + col, tl.exp(x - row_max) * scale, mask=col < cols)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    if cols <= LONG:
        block = triton.next_power_of_2(cols)
        softmax_whole[(triton.cdiv(rows, ROWS),)](x, y, rows, cols, BLOCK=block, HEIGHT=ROWS, num_warps=WARPS)
    else:
        softmax_blocks[(rows,)](x, y, cols, BLOCK=LONG, num_warps=WARPS)
    return y
