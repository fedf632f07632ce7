# presage: problem sum
# presage: tune ROWS = 1, 2, 4, 8, 16
# presage: tune BLOCK = 1024, 256, 2048, 4096
# presage: tune WARPS = 4, 1, 8
# presage: where ROWS * BLOCK <= 8192 and ROWS * BLOCK >= 128 * WARPS
#
# A program sums ROWS rows, BLOCK columns at a time, and reduces across lanes once, at the end.
import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        sums += tl.load(x_ptr + row * cols + start + lane, mask=inside, other=0.0)
    tl.store(y_ptr + row, tl.sum(sums, axis=1, keep_dims=True), mask=row < rows)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty(rows, dtype=x.dtype, device=x.device)
    row_sums[(triton.cdiv(rows, ROWS),)](x, y, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    return y
