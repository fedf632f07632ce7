$precision$
# presage: tune PROGRAMS = 132, 264, 528
# presage: tune BM = 64, 128, 32
# presage: tune BN = 64, 128, 32
# presage: tune BK = 32, 64
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 3, 2
# presage: tune ORDER = 0, 1
# presage: where BM * BN >= 512 * WARPS and BM * BN <= 2048 * WARPS
# presage: where STAGES == 3 or (BK == 32 and PROGRAMS == 132)
# presage: where ORDER == 0 or (PROGRAMS == 132 and BK == 32 and STAGES == 3)
# presage: where BK == 32 or PROGRAMS == 132
#
# PROGRAMS programs walk over the tiles of BM * BN elements: every PROGRAMS-th one in rows, with ORDER in columns.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(
    $pointers$, $out_pointer$, m, n, k, batches,
    ORDER: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, $constant$,
):
    across = tl.cdiv(n, BN)
    down = tl.cdiv(m, BM)
    for each in range(tl.program_id(0), batches * across * down, tl.num_programs(0)):
        $tile_start$
        tile = each % (across * down)
        if ORDER == 0:
            row = tile // across * BM + tl.arange(0, BM)[:, None]
            col = tile % across * BN + tl.arange(0, BN)[None, :]
        else:
            row = tile % down * BM + tl.arange(0, BM)[:, None]
            col = tile // down * BN + tl.arange(0, BN)[None, :]
        $tile_of_product$


def custom_kernel(data):
    $ins$, = data
    $sizes$
    out = $empty$
    batches = $batches$
    grid = (min(PROGRAMS, batches * triton.cdiv(m, BM) * triton.cdiv(n, BN)),)
    multiply[grid](
        $ins$, out, m, n, k, batches,
        ORDER=ORDER, BM=BM, BN=BN, BK=BK, $passed$, num_warps=WARPS, num_stages=STAGES,
    )
    return out
