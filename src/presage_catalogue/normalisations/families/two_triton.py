# presage: tune LONG = 1024, 512, 2048
# presage: tune ROWS = 1, 4
# presage: tune APPLY = 1024, 256, 4096
# presage: tune WARPS = 4, 8, 2
$tunes$
# presage: where ROWS * LONG <= 2048 * WARPS
#
# A first launch leaves the statistics of ROWS rows at a time in memory, read in blocks of LONG; a second one maps
# blocks of APPLY elements.
import torch
import triton
import triton.language as tl


@triton.jit
def statistics(
    $pointers$, rows_ptr, rows, cols, period, step, size, METHOD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    $row_statistics$
    $save$


@triton.jit
def apply($pointers$, rows_ptr, rows, cols, period, step, size, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) + tl.zeros([1, 1], tl.int64)
    col = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = (row < rows) & (col < cols)
    at = row * cols + col
    $restore$
    $load$
    $emit$
    $store$


def custom_kernel(data):
    $unpack$
    $empty$
    of_rows = torch.empty($results$ * rows, dtype=torch.float32, device=$first$.device)
    statistics[(triton.cdiv(rows, ROWS),)](
        $arrays$, of_rows, rows, cols, $channels$, METHOD=METHOD, HEIGHT=ROWS, WIDTH=LONG, num_warps=WARPS
    )
    apply[(rows, triton.cdiv(cols, APPLY))]($arrays$, of_rows, rows, cols, $channels$, WIDTH=APPLY, num_warps=WARPS)
    return $outs$
