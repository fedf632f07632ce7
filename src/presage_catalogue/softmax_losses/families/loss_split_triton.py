# presage: tune PARTS = 4, 2, 8, 32
# presage: tune BLOCK = 1024, 512, 2048, 4096
# presage: tune WARPS = 4, 8
#
# PARTS programs share a row and leave their totals in memory; a second launch joins those.
import torch
import triton
import triton.language as tl


$part_totals$
        seen = col < end
        $load$
        $include$
    $reduce$
    $save$


@triton.jit
def join_parts($pointers$, partial_ptr, rows, cols, stride, PARTS: tl.constexpr, HEIGHT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    parts = row * PARTS + tl.arange(0, PARTS)[None, :]
    $row$
    $restore_masked$
    $reduce$
    tl.store($out$_ptr + row, $finish$, mask=row < rows)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    $out$ = torch.empty(rows, dtype=torch.float32, device=$first$.device)
    partial = torch.empty($count$ * rows * PARTS, dtype=torch.float32, device=$first$.device)
    # A multiple of 16 tells the compiler that loads are aligned.
    share = triton.cdiv(triton.cdiv(cols, PARTS), 16) * 16
    part_totals[(rows * PARTS,)]($ins$, partial, rows, cols, share, PARTS=PARTS, BLOCK=BLOCK, num_warps=WARPS)
    grid = (triton.cdiv(rows, 32),)
    join_parts[grid]($ins$, $out$, partial, rows, cols, rows * PARTS, PARTS=PARTS, HEIGHT=32, num_warps=2)
    return $out$
