# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 32, 16, 64, 128
# presage: tune BN = 64, 128, 256
# presage: tune BK = 16, 32
# presage: tune WARPS = 4, 8
# presage: where BM * BN <= 1024 * WARPS or PRECISION != 'ieee'
# presage: where PRECISION != 'tf32' or BK == 32 and BM <= 32 and WARPS == 4
#
# One small matrix product for every tap and BK channels: the tap's weights (o by channels) by the image shifted by the
# tap (channels by pixels). A program computes BM channels of BN pixels. `ieee` multiplies in float32 on the ordinary
# units; `tf32` on the tensor cores, which see 10 bits of each factor's mantissa; `tf32x3` adds three such products.
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
    TAPS: tl.constexpr = KD * KH * KW
    area = od * oh * ow
    groups = tl.cdiv(o, BM)
    out = tl.program_id(0) % groups * BM + tl.arange(0, BM)[:, None]
    pixel = tl.program_id(0) // groups * BN + tl.arange(0, BN)[None, :]
    inside = pixel < n * area
    image = pixel // area
    patch_ptr = x_ptr + (
        (image * c * d + pixel // (ow * oh) % od * SD) * h + pixel // ow % oh * SH
    ) * w + pixel % ow * SW
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, c, BK):
        across = start + tl.arange(0, BK)[None, :]
        channel = start + tl.arange(0, BK)[:, None]
        for tap in range(TAPS):
            offset = (tap // (KH * KW) * DD * h + tap // KW % KH * DH) * w + tap % KW * DW
            weight = tl.load(
                weight_ptr + (out * c + across) * TAPS + tap, mask=(out < o) & (across < c), other=0.0
            )
            patch = tl.load(patch_ptr + channel * (d * h * w) + offset, mask=(channel < c) & inside, other=0.0)
            total += tl.dot(weight, patch, input_precision=PRECISION)
    $epilogue$
    tl.store(y_ptr + (image * o + out) * area + pixel % area, total, mask=(out < o) & inside)


$sizes_of_output$
    convolve[grid](
        x, weight, $bias$, y, n, c, d, h, w, o, od, oh, ow, KD=kd, KH=kh, KW=kw, SD=sd, SH=sh, SW=sw, DD=dd, DH=dh, DW=dw,
        BM=BM, BN=BN, BK=BK, PRECISION=PRECISION, num_warps=WARPS,
    )
    return y
