# presage: problem layernorm
# presage: tune LONG = 8192, 1024, 4096
# presage: tune ROWS = 1, 2, 4
# presage: tune WARPS = 4, 8, 16
#
# Rows of up to LONG columns are held whole, ROWS of them per program. A longer row is read in blocks of LONG: each lane
# keeps a running mean and sum of squared distances (Welford), which are merged at the end, and a second reading, from
# cache, gives the result.
import torch
import triton
import triton.language as tl


@triton.jit
def layernorm_whole(x_ptr, weight_ptr, bias_ptr, y_ptr, rows, cols, BLOCK: tl.constexpr, HEIGHT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
    weight = tl.load(weight_ptr + col, mask=col < cols)
    bias = tl.load(bias_ptr + col, mask=col < cols)
    mean = tl.sum(x, axis=1, keep_dims=True) / cols
    apart = tl.where(col < cols, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=1, keep_dims=True) / cols + 1e-5)
    tl.store(y_ptr + row * cols + col, apart * scale * weight + bias, mask=inside)


@triton.jit
def layernorm_blocks(x_ptr, weight_ptr, bias_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    count = tl.zeros([BLOCK], tl.float32)
    means = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, cols, BLOCK):
        inside = first + lane < cols
        x = tl.load(x_ptr + start + first + lane, mask=inside, other=0.0)
        count += tl.where(inside, 1.0, 0.0)
        delta = tl.where(inside, x - means, 0.0)
        means += delta / tl.maximum(count, 1.0)
        squares += delta * (x - means)
    mean = tl.sum(means * count, axis=0) / cols
    spread = tl.sum(squares + count * (means - mean) * (means - mean), axis=0)
    scale = 1.0 / tl.sqrt(spread / cols + 1e-5)
    for first in range(0, cols, BLOCK):
        inside = first + lane < cols
        x = tl.load(x_ptr + start + first + lane, mask=inside)
        weight = tl.load(weight_ptr + first + lane, mask=inside)
        bias = tl.load(bias_ptr + first + lane, mask=inside)
        tl.store(y_ptr + start + first + lane, (x - mean) * scale * weight + bias, mask=inside)


def custom_kernel(data):
    x, weight, bias = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    if cols <= LONG:
        grid, block = (triton.cdiv(rows, ROWS),), triton.next_power_of_2(cols)
        layernorm_whole[grid](x, weight, bias, y, rows, cols, BLOCK=block, HEIGHT=ROWS, num_warps=WARPS)
    else:
        layernorm_blocks[(rows,)](x, weight, bias, y, cols, BLOCK=LONG, num_warps=WARPS)
    return y
