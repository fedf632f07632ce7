# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 64, 32, 128
# presage: tune BN = 64, 128
# presage: tune BK = 16, 32
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 2, 3
# presage: where BM * BN <= 1024 * WARPS or PRECISION != 'ieee'
# presage: where PRECISION != 'tf32' or BK == 32 and STAGES == 3 and BM == 64
#
# A matrix product of the weights (o by channels * taps) and of the image's patches (channels * taps by pixels), which
# are gathered as they are needed. `ieee` multiplies in float32 on the ordinary units; `tf32` on the tensor cores, which
# see 10 bits of each factor's mantissa; `tf32x3` splits each factor into two such numbers and adds three products.
import torch
import triton
import triton.language as tl


@triton.jit
def convolve(
    x_ptr, weight_ptr, bias_ptr, y_ptr, n, c, d, h, w, o, od, oh, ow,
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    DD: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):
    area = od * oh * ow
    terms = c * KD * KH * KW
    groups = tl.cdiv(o, BM)
    out = tl.program_id(0) % groups * BM + tl.arange(0, BM)[:, None]
    pixel = tl.program_id(0) // groups * BN + tl.arange(0, BN)[None, :]
    inside = pixel < n * area
    image = pixel // area
    patch_ptr = x_ptr + (
        (image * c * d + pixel // (ow * oh) % od * SD) * h + pixel // ow % oh * SH
    ) * w + pixel % ow * SW
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, terms, BK):
        across_k = start + tl.arange(0, BK)[None, :]
        k = start + tl.arange(0, BK)[:, None]
        weight = tl.load(weight_ptr + out * terms + across_k, mask=(out < o) & (across_k < terms), other=0.0)
        channel = k // (KD * KH * KW)
        offset = ((channel * d + k // (KH * KW) % KD * DD) * h + k // KW % KH * DH) * w + k % KW * DW
        patch = tl.load(patch_ptr + offset, mask=(k < terms) & inside, other=0.0)
        total += tl.dot(weight, patch, input_precision=PRECISION)
    $epilogue$
    tl.store(y_ptr + (image * o + out) * area + pixel % area, total, mask=(out < o) & inside)


$sizes_of_output$
    convolve[grid](
        x, weight, $bias$, y, n, c, d, h, w, o, od, oh, ow, KD=kd, KH=kh, KW=kw, SD=sd, SH=sh, SW=sw, DD=dd, DH=dh, DW=dw,
        BM=BM, BN=BN, BK=BK, PRECISION=PRECISION, num_warps=WARPS, num_stages=STAGES,
    )
    return y
