# presage: tune BLOCK = 64, 16, 32, 128, 256
# presage: tune ROWS = 32, 8, 64, 128
# presage: tune WARPS = 4, 2, 8
$tunes$
# presage: where ROWS * BLOCK <= 2048 * WARPS and ROWS * BLOCK >= 32 * WARPS
#
# A program reduces BLOCK columns, ROWS rows at a time, with a state in every lane until the end.
import torch
import triton
import triton.language as tl

$helpers$

@triton.jit
def over_columns(
    $column_pointers$, y_ptr, n, cols, METHOD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    AXIS: tl.constexpr
):
    col = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    $start$
    for first in range(0, n, HEIGHT):
        index = first + tl.arange(0, HEIGHT)[:, None]
        inside = (index < n) & (col < cols)
        at = index.to(tl.int64) * cols + col
        $load$
        $add$
    $fold$
    tl.store(y_ptr + col, $finish$, mask=col < cols)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    y = torch.empty(cols, dtype=$result$, device=$first$.device)
    over_columns[(triton.cdiv(cols, BLOCK),)](
        $ins$, y, rows, cols, METHOD=METHOD, HEIGHT=ROWS, WIDTH=BLOCK, AXIS=0, num_warps=WARPS
    )
    return y
