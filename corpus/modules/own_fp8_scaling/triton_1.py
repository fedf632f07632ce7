import torch
import triton
import triton.language as tl


@triton.jit
def block_scale(x_ptr, y_ptr, s_ptr, blocks, ROWS: tl.constexpr):
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = b[:, None] * 128 + tl.arange(0, 128)[None, :]
    ok = b < blocks
    x = tl.load(x_ptr + at, mask=ok[:, None], other=0.0)
    s = tl.maximum(tl.max(tl.abs(x), 1), 1e-12) / 448.0
    y = tl.clamp(x / s[:, None], -448.0, 448.0)
    tl.store(y_ptr + at, y.to(tl.float16), mask=ok[:, None])
    tl.store(s_ptr + b, s, mask=ok)


def custom_kernel(data):
    (x,) = data
    y = torch.empty(x.shape, device=x.device, dtype=torch.float16)
    s = torch.empty((x.shape[0], x.shape[1] // 128), device=x.device)
    block_scale[(triton.cdiv(s.numel(), 32),)](x, y, s, s.numel(), ROWS=32, num_warps=4)
    return y, s
