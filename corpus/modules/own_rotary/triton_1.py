import torch
import triton
import triton.language as tl


@triton.jit
def rope(x_ptr, cos_ptr, sin_ptr, y_ptr, length, rows, HALF: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    h = tl.arange(0, HALF)
    m = (r < rows)[:, None] & (h < HALF)[None, :]
    t = r % length
    base = r[:, None] * (2 * HALF) + h[None, :]
    cs = t[:, None] * (2 * HALF) + h[None, :]
    a = tl.load(x_ptr + base, mask=m)
    b = tl.load(x_ptr + base + HALF, mask=m)
    c0 = tl.load(cos_ptr + cs, mask=m)
    s0 = tl.load(sin_ptr + cs, mask=m)
    c1 = tl.load(cos_ptr + cs + HALF, mask=m)
    s1 = tl.load(sin_ptr + cs + HALF, mask=m)
    tl.store(y_ptr + base, a * c0 - b * s0, mask=m)
    tl.store(y_ptr + base + HALF, b * c1 + a * s1, mask=m)


def apply(x, cos, sin):
    x = x.contiguous()
    y = torch.empty_like(x)
    rows = x.numel() // x.shape[-1]
    rope[(triton.cdiv(rows, 16),)](x, cos, sin, y, x.shape[2], rows, HALF=x.shape[-1] // 2, ROWS=16, num_warps=4)
    return y


def custom_kernel(data):
    q, k, cos, sin = data
    return apply(q, cos, sin), apply(k, cos, sin)
