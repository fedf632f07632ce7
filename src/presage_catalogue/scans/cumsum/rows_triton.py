# presage: problem cumsum
# presage: tune BLOCK = 1024, 256, 512, 2048, 4096
# presage: tune ROWS = 1, 2, 4, 8
# presage: tune WARPS = 4, 1, 8
# presage: where ROWS * BLOCK <= 8192 and ROWS * BLOCK >= 64 * WARPS
#
# A program scans ROWS rows, BLOCK columns at a time, and carries their sums along.
import torch
import triton
import triton.language as tl


@triton.jit
def scan_rows(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    before = tl.zeros([ROWS, 1], tl.float32)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=0.0)
        tl.store(y_ptr + row * cols + start + lane, before + tl.cumsum(x, axis=1), mask=inside)
        before += tl.sum(x, axis=1, keep_dims=True)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    scan_rows[(triton.cdiv(rows, ROWS),)](x, y, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    return y
