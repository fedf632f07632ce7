# presage: tune BM = 4, 1, 16, 64
# presage: tune BN = 256, 64, 1024
# presage: tune WARPS = 4, 1, 8
# presage: tune LOOP = 1, 0
# presage: tune STAGES = 1, 3
# presage: where BM * BN >= 64 * WARPS and BM * BN <= 16384
# presage: where LOOP == 1 or STAGES == 1
#
# A program makes BM rows of y, BN columns at a time: all of them one after the other with LOOP, with up to STAGES of
# their loads in flight, else one tile.
import torch
import triton
import triton.language as tl


@triton.jit
def over_rows(
    $pointers$, $sizes$, out_rows, out_cols, width,
    BM: tl.constexpr, BN: tl.constexpr, STAGES: tl.constexpr,
):
    r = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    row_inside = r < out_rows
    first = tl.program_id(1) * width
    for start in tl.range(first, tl.minimum(first + width, out_cols), BN, num_stages=STAGES):
        c = start + tl.arange(0, BN)[None, :]
        col_inside = c < out_cols
        inside = row_inside & col_inside
        $fetch$
        tl.store($out$_ptr + r * out_cols + c, value, mask=inside)


def custom_kernel(data):
    $unpack$
    $empty$
    out_rows, out_cols = $rows$, $cols$
    width = out_cols if LOOP else BN
    grid = (triton.cdiv(out_rows, BM), triton.cdiv(out_cols, width))
    over_rows[grid]($ins$, $out$, $sizes$, out_rows, out_cols, width, BM=BM, BN=BN, STAGES=STAGES, num_warps=WARPS)
    return $out$
