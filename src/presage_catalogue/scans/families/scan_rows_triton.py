# presage: tune BLOCK = 1024, 256, 512, 2048, 4096
# presage: tune ROWS = 1, 2, 4, 8
# presage: tune WARPS = 4, 1, 8
# presage: where ROWS * BLOCK <= 8192 and ROWS * BLOCK >= 64 * WARPS
#
# A program scans ROWS rows, BLOCK columns at a time, and carries their totals along.
import torch
import triton
import triton.language as tl


@triton.jit
def combine($arguments$):
    $combine$


@triton.jit
def scan_rows($pointers$, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    $begin$
    for start in range(0, cols, BLOCK):
        col = start + lane
        inside = (row < rows) & (col < cols)
        $scan_step$


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    y = torch.empty_like($first$)
    scan_rows[(triton.cdiv(rows, ROWS),)]($ins$, y, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    return y
