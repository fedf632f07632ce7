import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def bilinear(x_ptr, y_ptr, H, W, OH, OW, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < OH * OW
    sy = (at // OW) * ((H - 1) / (OH - 1))
    sx = (at % OW) * ((W - 1) / (OW - 1))
    y0 = tl.floor(sy).to(tl.int32)
    x0 = tl.floor(sx).to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    wy = sy - y0
    wx = sx - x0
    src = x_ptr + plane * H * W
    v = (1 - wy) * ((1 - wx) * tl.load(src + y0 * W + x0, mask=ok) + wx * tl.load(src + y0 * W + x1, mask=ok))
    v += wy * ((1 - wx) * tl.load(src + y1 * W + x0, mask=ok) + wx * tl.load(src + y1 * W + x1, mask=ok))
    tl.store(y_ptr + plane * OH * OW + at, v, mask=ok)


def custom_kernel(data):
    x, weight, bias = data
    N, C, H, W = x.shape
    big = torch.empty(N, C, 2 * H, 2 * W, device=x.device)
    bilinear[(triton.cdiv(4 * H * W, 512), N * C)](x, big, H, W, 2 * H, 2 * W, BLOCK=512)
    return F.conv2d(big.to(memory_format=torch.channels_last), weight, bias, padding=1).contiguous()
