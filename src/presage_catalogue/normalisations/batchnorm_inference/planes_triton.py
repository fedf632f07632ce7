# presage: problem batchnorm_inference
# presage: tune PLANES = 1, 4, 16
# presage: tune LONG = 1024, 64, 256, 4096
# presage: tune WARPS = 4, 1, 8
# presage: where PLANES * LONG <= 16384 and PLANES * LONG >= 64 * WARPS
#
# A program takes up to LONG elements of PLANES channels, each with its scale and shift.
import torch
import triton
import triton.language as tl


@triton.jit
def batchnorm(
    x_ptr, mean_ptr, variance_ptr, weight_ptr, bias_ptr, y_ptr, planes, channels, size, PLANES: tl.constexpr,
    LONG: tl.constexpr
):
    plane = tl.program_id(0) * PLANES + tl.arange(0, PLANES)[:, None]
    c = plane % channels
    scale = tl.load(weight_ptr + c) / tl.sqrt(tl.load(variance_ptr + c) + 1e-5)
    shift = tl.load(bias_ptr + c) - tl.load(mean_ptr + c) * scale
    i = tl.program_id(1) * LONG + tl.arange(0, LONG)[None, :]
    inside = (plane < planes) & (i < size)
    x = tl.load(x_ptr + plane * size + i, mask=inside)
    tl.store(y_ptr + plane * size + i, x * scale + shift, mask=inside)


def custom_kernel(data):
    x, mean, variance, weight, bias = data
    y = torch.empty_like(x)
    batch, channels, size = x.shape
    grid = (triton.cdiv(batch * channels, PLANES), triton.cdiv(size, LONG))
    batchnorm[grid](
        x, mean, variance, weight, bias, y, batch * channels, channels, size, PLANES=PLANES, LONG=LONG, num_warps=WARPS
    )
    return y
