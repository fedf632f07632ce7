# presage: tune BM = 8, 1, 32
# presage: tune BN = 128, 32, 512
# presage: tune WARPS = 4, 1, 8
# presage: tune ORDER = 0, 1
# presage: tune FOLD = 0, 1
# presage: where BM * BN >= 64 * WARPS and BM * BN <= 8192
# presage: where FOLD == 0 or (WARPS == 4 and ORDER == 0)
#
# A program adds to BM rows of BN columns what belongs to their places. ORDER 0 takes the tiles along the rows, 1 down
# the columns. FOLD keeps the terms in half precision before they are added.
import torch
import triton
import triton.language as tl


@triton.jit
def over_tiles(
    x_ptr, y_ptr, $sizes$, height, width,
    BM: tl.constexpr, BN: tl.constexpr, ORDER: tl.constexpr, FOLD: tl.constexpr,
):
    pid = tl.program_id(0)
    if ORDER:
        r = pid % tl.cdiv(height, BM) * BM + tl.arange(0, BM)[:, None]
        c = pid // tl.cdiv(height, BM) * BN + tl.arange(0, BN)[None, :]
    else:
        r = pid // tl.cdiv(width, BN) * BM + tl.arange(0, BM)[:, None]
        c = pid % tl.cdiv(width, BN) * BN + tl.arange(0, BN)[None, :]
    inside = (r < height) & (c < width)
    $term$
    if FOLD:
        term = term.to(tl.float16).to(tl.float32)
    tl.store(y_ptr + r * width + c, tl.load(x_ptr + r * width + c, mask=inside) + term, mask=inside)


def custom_kernel(data):
    (x,) = data
    $unpack$
    y = torch.empty_like(x)
    height, width = $rows$, $cols$
    grid = (triton.cdiv(height, BM) * triton.cdiv(width, BN),)
    over_tiles[grid](x, y, $sizes$, height, width, BM=BM, BN=BN, ORDER=ORDER, FOLD=FOLD, num_warps=WARPS)
    return y
