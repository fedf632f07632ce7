# presage: tune PARTS = 4, 2, 8, 16
# presage: tune BLOCK = 1024, 512, 2048, 4096
# presage: tune WARPS = 4, 8
#
# PARTS programs share a row. The first launch leaves each part's total in memory, the second joins them and writes the
# result, for which it reads the inputs again.
import torch
import triton
import triton.language as tl


$part_totals$
        inside = col < end
        seen = $seen$
        $load$
        $include$
    $reduce$
    $save$


@triton.jit
def write_parts($pointers$, partial_ptr, rows, cols, share, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // PARTS).to(tl.int64) + tl.zeros([1, 1], tl.int64)
    first = tl.program_id(0) % PARTS * share
    end = tl.minimum(first + share, cols)
    parts = tl.program_id(0) // PARTS * PARTS + tl.arange(0, PARTS)[None, :]
    stride = tl.num_programs(0)
    $row$
    $restore$
    $reduce$
    $settle$
    for start in range(first, end, BLOCK):
        col = start + tl.arange(0, BLOCK)[None, :]
        at = row * cols + col
        inside = col < end
        seen = $seen$
        $load$
        tl.store($out$_ptr + at, ($apply$).to($out$_ptr.dtype.element_ty), mask=inside)


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    $out$ = torch.empty_like($first$)
    partial = torch.empty($count$ * rows * PARTS, dtype=torch.float32, device=$first$.device)
    # A multiple of 16 tells the compiler that loads are aligned.
    share = triton.cdiv(triton.cdiv(cols, PARTS), 16) * 16
    grid = (rows * PARTS,)
    part_totals[grid]($ins$, partial, rows, cols, share, PARTS=PARTS, BLOCK=BLOCK, num_warps=WARPS)
    write_parts[grid]($ins$, $out$, partial, rows, cols, share, PARTS=PARTS, BLOCK=BLOCK, num_warps=WARPS)
    return $out$
