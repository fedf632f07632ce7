# presage: tune PARTS = 16, 4, 64, 256
# presage: tune BLOCK = 64, 32, 128, 256
# presage: tune ROWS = 32, 8
# presage: tune WARPS = 4, 8
$tunes$
#
# PARTS programs share the rows of BLOCK columns and leave their states in memory; a second launch merges those.
import torch
import triton
import triton.language as tl

$helpers$

@triton.jit
def over_parts(
    $column_pointers$, partial_ptr, parts, n, cols, share, METHOD: tl.constexpr, HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr, AXIS: tl.constexpr
):
    col = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    begin = tl.program_id(1) * share
    end = tl.minimum(begin + share, n)
    $start$
    for first in range(begin, end, HEIGHT):
        index = first + tl.arange(0, HEIGHT)[:, None]
        inside = (index < end) & (col < cols)
        at = index.to(tl.int64) * cols + col
        $load$
        $add$
    $fold$
    part = tl.program_id(1) * cols + col
    kept = col < cols
    $save$


@triton.jit
def merge_parts(
    partial_ptr, y_ptr, parts, n, cols, METHOD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    AXIS: tl.constexpr
):
    col = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[None, :]
    part = tl.arange(0, HEIGHT)[:, None] * cols + col
    inside = (part < parts) & (col < cols)
    $restore$
    $fold$
    tl.store(y_ptr + col, $finish$, mask=col < cols)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    y = torch.empty(cols, dtype=$result$, device=$first$.device)
    partial = torch.empty($fields$ * cols * PARTS, dtype=torch.float32, device=$first$.device)
    share = triton.cdiv(rows, PARTS)
    over_parts[(triton.cdiv(cols, BLOCK), PARTS)](
        $ins$, partial, cols * PARTS, rows, cols, share, METHOD=METHOD, HEIGHT=ROWS, WIDTH=BLOCK, AXIS=0,
        num_warps=WARPS
    )
    merge_parts[(triton.cdiv(cols, 16),)](
        partial, y, cols * PARTS, rows, cols, METHOD=METHOD, HEIGHT=PARTS, WIDTH=16, AXIS=0, num_warps=4
    )
    return y
