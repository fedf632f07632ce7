# presage: tune BLOCK = 1024, 64, 128, 512, 2048, 4096, 8192
# presage: tune ROWS = 1, 2, 4, 16
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune LATE = 1, 0
# presage: tune KEPT = float32, float16
# presage: where BLOCK * ROWS >= 32 * WARPS and BLOCK * ROWS <= 8192 and (LATE == 1 or ROWS <= 2)
# presage: where KEPT == 'float32' or ROWS == 1 and LATE == 1
#
# A program reduces ROWS planes, BLOCK elements of each at a time. LATE keeps BLOCK partial results until the end;
# otherwise each step comes to one. Partial results are KEPT in that type.
import torch
import triton
import triton.language as tl


@triton.jit
def over_rows(x_ptr, y_ptr, rows, length, BLOCK: tl.constexpr, ROWS: tl.constexpr, LATE: tl.constexpr, HALF: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.full([ROWS], $row_start$, tl.float32)
    state = tl.full([ROWS, BLOCK], $row_start$, tl.float16 if HALF else tl.float32)
    for start in range(0, length, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < rows) & (col < length)
        b = tl.load(x_ptr + row[:, None] * length + col, mask=inside, other=$row_start$)
        if LATE:
            a = state
            state = ($row_take$).to(state.dtype)
        else:
            state = b
            a = total
            b = $row_reduce$
            total = $row_take$
    if LATE:
        state = state.to(tl.float32)
        total = $row_reduce$
    state = total
    tl.store(y_ptr + row, $row_finish$, mask=row < rows)


def custom_kernel(data):
    x, = data
    n, c, h, w = x.shape
    y = torch.empty((n, c), dtype=x.dtype, device=x.device)
    over_rows[(triton.cdiv(n * c, ROWS),)](
        x, y, n * c, h * w, BLOCK=BLOCK, ROWS=ROWS, LATE=LATE, HALF=KEPT == "float16",
        num_warps=WARPS,
    )
    return y
