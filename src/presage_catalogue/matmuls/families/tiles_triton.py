$precision$
# presage: tune BM = 64, 32, 128, 16
# presage: tune BN = 64, 32, 128
# presage: tune BK = $depths$
# presage: tune GROUP = 8, 1
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 3, 2, 4
# presage: where BM * BN >= 512 * WARPS and BM * BN <= 2048 * WARPS
# presage: where GROUP == 8 or STAGES == 3
# presage: where STAGES == 3 or BK == 32
# presage: where BM > 16 or BN > 32
#
# A program computes BM * BN elements, in the precision that is named. Programs go down GROUP rows of tiles at a time, so
# that neighbours share tiles in cache.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(
    $pointers$, $out_pointer$, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, $constant$,
):
    across = tl.cdiv(n, BN)
    down = tl.cdiv(m, BM)
    t = (tl.program_id(0) // (across * down)).to(tl.int64)
    tile = tl.program_id(0) % (across * down)
    $select$
    first = tile // (GROUP * across) * GROUP
    height = tl.minimum(down - first, GROUP)
    inside = tile % (GROUP * across)
    row = (first + inside % height) * BM + tl.arange(0, BM)[:, None]
    col = inside // height * BN + tl.arange(0, BN)[None, :]
    $tile_of_product$


def custom_kernel(data):
    $ins$, = data
    $sizes$
    out = $empty$
    grid = ($batches$ * triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    multiply[grid](
        $ins$, out, m, n, k,
        BM=BM, BN=BN, BK=BK, GROUP=GROUP, $passed$, num_warps=WARPS, num_stages=STAGES,
    )
    return out
