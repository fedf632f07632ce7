# presage: tune ROWS = 1, 2, 4, 8, 16
# presage: tune BLOCK = 1024, 256, 2048, 4096
# presage: tune WARPS = 4, 1, 8
$tunes$
# presage: where ROWS * BLOCK <= 8192 and ROWS * BLOCK >= 128 * WARPS and ROWS * BLOCK <= 2048 * WARPS
#
# A program reduces ROWS rows, BLOCK columns at a time, with a state in every lane until the end.
import torch
import triton
import triton.language as tl

$helpers$

@triton.jit
def over_rows(
    $row_pointers$, y_ptr, rows, n, METHOD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, AXIS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    $start$
    for first in range(0, n, WIDTH):
        index = first + tl.arange(0, WIDTH)[None, :]
        inside = (row < rows) & (index < n)
        at = row * n + index
        $load$
        $add$
    $fold$
    tl.store(y_ptr + row, $finish$, mask=row < rows)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    y = torch.empty(rows, dtype=$result$, device=$first$.device)
    over_rows[(triton.cdiv(rows, ROWS),)](
        $ins$, y, rows, cols, METHOD=METHOD, HEIGHT=ROWS, WIDTH=BLOCK, AXIS=1, num_warps=WARPS
    )
    return y
