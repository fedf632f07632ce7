# presage: problem conv2d
# presage: tune PRECISION = ieee, tf32x3
# presage: tune BM = 64, 32, 128
# presage: tune BN = 64, 128
# presage: tune BK = 16, 32
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 2, 3
# presage: where BM * BN <= 1024 * WARPS or PRECISION == 'tf32x3'
#
# A matrix product of the weights (o by c * r * s) and of the image's patches (c * r * s by pixels), which are
# gathered as they are needed. `ieee` multiplies in float32 on the ordinary units; `tf32x3` splits each factor into
# two TF32 numbers and adds three products on the tensor cores, which is as accurate.
import torch
import triton
import triton.language as tl


@triton.jit
def convolve(
    x_ptr, weight_ptr, y_ptr, n, c, h, w, o,
    R: tl.constexpr, S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):
    rows = h - R + 1
    cols = w - S + 1
    terms = c * R * S
    groups = tl.cdiv(o, BM)
    out = tl.program_id(0) % groups * BM + tl.arange(0, BM)[:, None]
    pixel = tl.program_id(0) // groups * BN + tl.arange(0, BN)[None, :]
    image = pixel // (rows * cols)
    inside = pixel < n * rows * cols
    patch_ptr = x_ptr + (image * c * h + pixel // cols % rows) * w + pixel % cols
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, terms, BK):
        across_k = start + tl.arange(0, BK)[None, :]
        k = start + tl.arange(0, BK)[:, None]
        weight = tl.load(weight_ptr + out * terms + across_k, mask=(out < o) & (across_k < terms), other=0.0)
        offset = (k // (R * S) * h + k // S % R) * w + k % S
        patch = tl.load(patch_ptr + offset, mask=(k < terms) & inside, other=0.0)
        total += tl.dot(weight, patch, input_precision=PRECISION)
    place = (image * o + out) * (rows * cols) + pixel % (rows * cols)
    tl.store(y_ptr + place, total, mask=(out < o) & inside)


def custom_kernel(data):
    x, weight = data
    n, c, h, w = x.shape
    o, _, r, s = weight.shape
    y = torch.empty((n, o, h - r + 1, w - s + 1), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(o, BM) * triton.cdiv(n * (h - r + 1) * (w - s + 1), BN),)
    convolve[grid](
        x, weight, y, n, c, h, w, o,
        R=r, S=s, BM=BM, BN=BN, BK=BK, PRECISION=PRECISION, num_warps=WARPS, num_stages=STAGES,
    )
    return y
