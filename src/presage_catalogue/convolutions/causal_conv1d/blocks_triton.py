# presage: problem causal_conv1d
# presage: tune BLOCK = 512, 128, 256, 1024
# presage: tune ROWS = 1, 2, 4, 8
# presage: tune WARPS = 4, 2, 8
# presage: where ROWS * BLOCK <= 2048 and ROWS * BLOCK >= 64 * WARPS
#
# A program computes BLOCK outputs of ROWS rows. Each weight meets x shifted by its place; the shifted copies come from
# cache.
import torch
import triton
import triton.language as tl


@triton.jit
def convolve(
    x_ptr, weight_ptr, y_ptr, rows, channels, length,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    tiles = tl.cdiv(length, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    t = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (t < length)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for j in range(WIDTH):
        at = t - (WIDTH - 1) + j
        weight = tl.load(weight_ptr + row % channels * WIDTH + j)
        total += weight * tl.load(x_ptr + row * length + at, mask=inside & (at >= 0), other=0.0)
    tl.store(y_ptr + row * length + t, total, mask=inside)


def custom_kernel(data):
    x, weight = data
    batch, channels, length = x.shape
    y = torch.empty_like(x)
    rows = batch * channels
    grid = (triton.cdiv(rows, ROWS) * triton.cdiv(length, BLOCK),)
    convolve[grid](
        x, weight, y, rows, channels, length, WIDTH=weight.shape[1], ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS
    )
    return y
