# presage: tune ROWS = 1, 4
# presage: tune BLOCK = 64, 32, 128
# presage: tune WIDTH = 32, 8, 128
# presage: tune WARPS = 4, 1, 8
# presage: where ROWS * BLOCK * WIDTH <= 8192 and ROWS * BLOCK * WIDTH >= 64 * WARPS
#
# A program finds the places of BLOCK elements of each of ROWS rows by counting what comes before them, WIDTH elements
# of the row at a time.
import torch
import triton
import triton.language as tl


@triton.jit
def rank_elements(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    blocks = tl.cdiv(cols, BLOCK)
    row = tl.program_id(0) // blocks * ROWS + tl.arange(0, ROWS)[:, None, None]
    col_i = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)[None, :, None]
    mine = (row < rows) & (col_i < cols)
    x_i = tl.load(x_ptr + row * cols + col_i, mask=mine, other=0.0)
    before = tl.zeros([ROWS, BLOCK, WIDTH], tl.int32)
    for start in range(0, cols, WIDTH):
        col_j = start + tl.arange(0, WIDTH)[None, None, :]
        inside = (row < rows) & (col_j < cols)
        x_j = tl.load(x_ptr + row * cols + col_j, mask=inside, other=float("inf"))
        first = (x_j < x_i) | ((x_j == x_i) & (col_j < col_i))
        before += (first & inside).to(tl.int32)
    rank = tl.sum(before, axis=2, keep_dims=True)
    item = $item$ + tl.zeros_like(col_i + row).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * cols + rank, item, mask=mine)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty(rows, cols, dtype=$dtype$, device=x.device)
    grid = (triton.cdiv(rows, ROWS) * triton.cdiv(cols, BLOCK),)
    rank_elements[grid](x, y, rows, cols, ROWS=ROWS, BLOCK=BLOCK, WIDTH=WIDTH, num_warps=WARPS)
    return y
