# presage: tune ROWS = 1, 2, 4, 8
# presage: tune WARPS = 4, 8, 16, 32
# presage: tune LIMIT = 16384, 131072
# presage: where LIMIT == 16384 or WARPS >= 16
#
# A program holds ROWS whole rows, filled up to a power of two, or one if they are more than 8192 elements together.
# Rows of more than LIMIT columns are read in blocks of 8192, once for their totals and once for the result.
import torch
import triton
import triton.language as tl


@triton.jit
def map_whole($pointers$, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    at = row * cols + col
    inside = (row < rows) & (col < cols)
    seen = $seen$
    $row$
    $load$
    $whole$
    $settle$
    tl.store($out$_ptr + at, ($apply$).to($out$_ptr.dtype.element_ty), mask=inside)


@triton.jit
def map_blocks($pointers$, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) + tl.arange(0, ROWS)[:, None]
    $two_passes$


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    $out$ = torch.empty_like($first$)
    block = triton.next_power_of_2(cols)
    if block <= LIMIT:
        height = ROWS if ROWS * block <= 8192 else 1
        grid = (triton.cdiv(rows, height),)
        map_whole[grid]($ins$, $out$, rows, cols, ROWS=height, BLOCK=block, num_warps=WARPS)
    else:
        map_blocks[(rows,)]($ins$, $out$, rows, cols, ROWS=1, BLOCK=8192, num_warps=WARPS)
    return $out$
