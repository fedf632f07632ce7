import math

import torch
import triton
import triton.language as tl


@triton.jit
def add_positions(x_ptr, p_ptr, y_ptr, D, root, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    ok = c < D
    pos = tl.load(p_ptr + row).to(tl.float32)
    angle = pos * tl.exp((c // 2 * 2).to(tl.float32) * step)
    wave = tl.where(c % 2 == 0, tl.sin(angle), tl.cos(angle))
    x = tl.load(x_ptr + row * D + c, mask=ok, other=0.0)
    tl.store(y_ptr + row * D + c, x * root + wave, mask=ok)


def custom_kernel(data):
    x, positions = data
    D = x.shape[-1]
    y = torch.empty_like(x)
    add_positions[(positions.numel(),)](x, positions, y, D, math.sqrt(D), -math.log(10000.0) / D,
                                        BLOCK=triton.next_power_of_2(D), num_warps=4)
    return y
