# presage: tune BM = 8, 1, 32
# presage: tune BN = 128, 32, 512, 2048
# presage: tune WARPS = 4, 1, 8
# presage: tune LOOP = 0, 1
# presage: where BM * BN >= 64 * WARPS and BM * BN <= 16384
#
# A program recodes BM rows of BN columns, or with LOOP all columns of BM rows, BN at a time.
import torch
import triton
import triton.language as tl


@triton.jit
def over_tiles($pointers$, $sizes$, wide, span, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    row_inside = r < rows
    first = tl.program_id(1) * span
    for start in range(first, tl.minimum(first + span, wide), BN):
        c = start + tl.arange(0, BN)[None, :]
        col_inside = c < wide
        inside = row_inside & col_inside
        place = r * wide + c
        v = tl.load($source$_ptr + place, mask=inside)
        $recode$


def custom_kernel(data):
    $ins$, = data
    $recode_unpack$
    $empty$
    wide = $width$
    span = wide if LOOP else BN
    grid = (triton.cdiv(rows, BM), triton.cdiv(wide, span))
    over_tiles[grid]($ins$, $out$, $sizes$, wide, span, BM=BM, BN=BN, num_warps=WARPS)
    return $out$
