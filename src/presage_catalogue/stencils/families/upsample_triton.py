# presage: tune TH = 4, 1, 2, 8, 16
# presage: tune TW = 256, 32, 64, 128, 512
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune HINT = none, streaming
# presage: where TH * TW >= 32 * WARPS and TH * TW <= 2048
#
# A program computes TH by TW outputs; HINT says whether they are likely to be read again soon.
import torch
import triton
import triton.language as tl


@triton.jit
def fetch(u_ptr, image, y, x, h, w, inside, dy, dx):
    y = tl.minimum(tl.maximum(y + dy, 0), h - 1)
    x = tl.minimum(tl.maximum(x + dx, 0), w - 1)
    return tl.load(u_ptr + (image * h + y) * w + x, mask=inside, other=0.0)


@triton.jit
def upsample(u_ptr, out_ptr, h, w, TH: tl.constexpr, TW: tl.constexpr, STREAMING: tl.constexpr):
    across = tl.cdiv(2 * w, TW)
    down = tl.cdiv(2 * h, TH)
    q = tl.program_id(0) % across * TW + tl.arange(0, TW)[None, :]
    p = tl.program_id(0) // across % down * TH + tl.arange(0, TH)[:, None]
    image = tl.program_id(0) // across // down
    inside = (p < 2 * h) & (q < 2 * w)
    y = p // 2
    x = q // 2
    a = p % 2
    b = q % 2
    $upsample$
    place = (image * 2 * h + p) * 2 * w + q
    tl.store(out_ptr + place, value, mask=inside, cache_modifier=".cs" if STREAMING else "")


def custom_kernel(data):
    u, = data
    n, h, w = u.shape
    out = torch.empty((n, 2 * h, 2 * w), dtype=u.dtype, device=u.device)
    grid = (n * triton.cdiv(2 * h, TH) * triton.cdiv(2 * w, TW),)
    upsample[grid](u, out, h, w, TH=TH, TW=TW, STREAMING=HINT == "streaming", num_warps=WARPS)
    return out
