# presage: tune METHOD = lanes, rows
# presage: tune ROWS = 1, 2, 4
# presage: tune BLOCK = 1024, 512, 2048, 4096, 8192
# presage: tune WARPS = 4, 8, 16
# presage: where ROWS * BLOCK <= 8192 and ROWS * BLOCK >= 64 * WARPS
#
# A program takes ROWS rows, BLOCK columns at a time: once for the rows' totals, and again for the result. With METHOD
# `lanes` every lane has a total of its own until the end of the row, with `rows` the lanes are joined block by block.
import torch
import triton
import triton.language as tl


@triton.jit
def over_lanes($pointers$, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    $two_passes$


@triton.jit
def over_rows($pointers$, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    $row$
    $begin_rows$
    for start in range(0, cols, BLOCK):
        col = start + lane
        at = row * cols + col
        inside = (row < rows) & (col < cols)
        seen = $seen$
        $load$
        $step$
    $settle$
    for start in range(0, cols, BLOCK):
        col = start + lane
        at = row * cols + col
        inside = (row < rows) & (col < cols)
        seen = $seen$
        $load$
        tl.store($out$_ptr + at, ($apply$).to($out$_ptr.dtype.element_ty), mask=inside)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    $out$ = torch.empty_like($first$)
    kernel = over_lanes if METHOD == "lanes" else over_rows
    kernel[(triton.cdiv(rows, ROWS),)]($ins$, $out$, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    return $out$
