import math

import torch
import triton
import triton.language as tl


@triton.jit
def sinusoid_kernel(x_ptr, pos_ptr, out_ptr, width, scale, log_rate, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    row = offsets // width
    col = offsets % width
    pos = tl.load(pos_ptr + row, mask=mask, other=0).to(tl.float32)
    freq = tl.exp(-((col // 2) * 2) * log_rate)
    wave = tl.where(col % 2 == 0, tl.sin(pos * freq), tl.cos(pos * freq))
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * scale + wave, mask=mask)


def custom_kernel(data):
    x, positions = data
    width = x.shape[-1]
    out = torch.empty_like(x)
    n = x.numel()
    BLOCK_SIZE = 1024
    grid = (n // BLOCK_SIZE,)
    sinusoid_kernel[grid](x, positions, out, width, math.sqrt(width), math.log(10000.0) / width, n, BLOCK_SIZE=BLOCK_SIZE)
    return out
