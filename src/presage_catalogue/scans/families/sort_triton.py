# presage: tune ROWS = 1, 2, 4, 8
# presage: tune WARPS = 4, 1, 2, 8
#
# A program sorts ROWS whole rows, filled up to a power of two.
import torch
import triton
import triton.language as tl


@triton.jit
def sort_whole(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=float("inf"))
    $key$
    key = tl.sort(key, dim=1)
    tl.store(y_ptr + row * cols + col, ($unkey$).to(y_ptr.dtype.element_ty), mask=inside)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty(rows, cols, dtype=$dtype$, device=x.device)
    block = max(2, triton.next_power_of_2(cols))
    height = ROWS if ROWS * block <= 4096 else 1
    sort_whole[(triton.cdiv(rows, height),)](x, y, rows, cols, ROWS=height, BLOCK=block, num_warps=WARPS)
    return y
