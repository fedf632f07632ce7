# presage: tune LONG = 8192, 1024, 2048, 4096
# presage: tune ROWS = 1, 2, 4
# presage: tune WARPS = 4, 8, 16
$tunes$
# presage: where ROWS * LONG <= 2048 * WARPS
#
# Rows of up to LONG columns are held whole, ROWS of them per program. Longer ones are read in blocks of LONG, once for
# the statistics of every lane and, from cache, once for the result.
import torch
import triton
import triton.language as tl


@triton.jit
def whole_rows(
    $pointers$, rows, cols, period, step, size, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    col = tl.arange(0, WIDTH)[None, :]
    inside = (row < rows) & (col < cols)
    at = row * cols + col
    $load$
    $whole$
    $emit$
    $store$


@triton.jit
def blocks_of_rows(
    $pointers$, rows, cols, period, step, size, METHOD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    $row_statistics$
    for begin in range(0, cols, WIDTH):
        col = begin + tl.arange(0, WIDTH)[None, :]
        inside = (row < rows) & (col < cols)
        at = row * cols + col
        $load$
        $emit$
        $store$


def custom_kernel(data):
    $unpack$
    $empty$
    grid = (triton.cdiv(rows, ROWS),)
    if cols <= LONG:
        block = triton.next_power_of_2(cols)
        whole_rows[grid]($arrays$, rows, cols, $channels$, HEIGHT=ROWS, WIDTH=block, num_warps=WARPS)
    else:
        blocks_of_rows[grid](
            $arrays$, rows, cols, $channels$, METHOD=METHOD, HEIGHT=ROWS, WIDTH=LONG, num_warps=WARPS
        )
    return $outs$
