import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def up2(x_ptr, y_ptr, H, W, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < total
    j = at % (2 * W)
    i = (at // (2 * W)) % (2 * H)
    plane = at // (4 * H * W)
    sy = tl.maximum((i + 0.5) * 0.5 - 0.5, 0.0)
    sx = tl.maximum((j + 0.5) * 0.5 - 0.5, 0.0)
    y0 = sy.to(tl.int32)
    x0 = sx.to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    fy = sy - y0
    fx = sx - x0
    p = x_ptr + plane * H * W
    a = tl.load(p + y0 * W + x0, mask=ok)
    b = tl.load(p + y0 * W + x1, mask=ok)
    c = tl.load(p + y1 * W + x0, mask=ok)
    d = tl.load(p + y1 * W + x1, mask=ok)
    top = a + (b - a) * fx
    bottom = c + (d - c) * fx
    tl.store(y_ptr + at, top + (bottom - top) * fy, mask=ok)


def custom_kernel(data):
    x, weight, bias = data
    N, C, H, W = x.shape
    big = torch.empty((N, C, 2 * H, 2 * W), device=x.device, dtype=x.dtype)
    up2[(triton.cdiv(big.numel(), 1024),)](x, big, H, W, big.numel(), BLOCK=1024)
    return F.conv2d(big, weight, bias, padding=1)
