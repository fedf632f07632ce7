# presage: tune PARTS = 4, 2, 8, 32
# presage: tune BLOCK = 1024, 256, 2048
# presage: tune WARPS = 4, 8, 2
$tunes$
#
# PARTS programs share a row and leave their states in memory; a second launch merges those.
import torch
import triton
import triton.language as tl

$helpers$

@triton.jit
def over_parts(
    $row_pointers$, partial_ptr, parts, n, share, PARTS: tl.constexpr, METHOD: tl.constexpr, HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr, AXIS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) // PARTS
    begin = tl.program_id(0) % PARTS * share
    end = tl.minimum(begin + share, n)
    $start$
    for first in range(begin, end, WIDTH):
        index = first + tl.arange(0, WIDTH)[None, :]
        inside = index < end
        at = row * n + index
        $load$
        $add$
    $fold$
    part = tl.program_id(0) + tl.zeros([1, 1], tl.int32)
    kept = part >= 0
    $save$


@triton.jit
def merge_parts(
    partial_ptr, y_ptr, rows, parts, n, METHOD: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    AXIS: tl.constexpr
):
    row = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    part = row * WIDTH + tl.arange(0, WIDTH)[None, :]
    inside = part < parts
    $restore$
    $fold$
    tl.store(y_ptr + row, $finish$, mask=row < rows)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    y = torch.empty(rows, dtype=$result$, device=$first$.device)
    partial = torch.empty($fields$ * rows * PARTS, dtype=torch.float32, device=$first$.device)
    # A multiple of 16 tells the compiler that loads are aligned.
    share = triton.cdiv(triton.cdiv(cols, PARTS), 16) * 16
    over_parts[(rows * PARTS,)](
        $ins$, partial, rows * PARTS, cols, share, PARTS=PARTS, METHOD=METHOD, HEIGHT=1, WIDTH=BLOCK, AXIS=1,
        num_warps=WARPS
    )
    merge_parts[(triton.cdiv(rows, 32),)](
        partial, y, rows, rows * PARTS, cols, METHOD=METHOD, HEIGHT=32, WIDTH=PARTS, AXIS=1, num_warps=2
    )
    return y
