# presage: problem batchnorm_training
# presage: tune PARTS = 32, 8, 128
# presage: tune BLOCK = 64, 32, 128
# presage: tune ROWS = 32, 16
# presage: tune APPLY = 16, 4
# presage: tune WARPS = 4, 8
#
# PARTS programs share the rows of BLOCK columns and leave running means and squares (Welford) in memory, a second launch
# merges them, and a third normalises APPLY rows at a time.
import torch
import triton
import triton.language as tl


@triton.jit
def statistics(x_ptr, partial_ptr, rows, cols, share, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    begin = tl.program_id(1) * share
    end = tl.minimum(begin + share, rows)
    count = tl.zeros([ROWS, BLOCK], tl.float32)
    means = tl.zeros([ROWS, BLOCK], tl.float32)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < end) & (col < cols)
        x = tl.load(x_ptr + row.to(tl.int64) * cols + col, mask=inside, other=0.0)
        count += tl.where(inside, 1.0, 0.0)
        apart = tl.where(inside, x - means, 0.0)
        means += apart / tl.maximum(count, 1.0)
        squares += apart * (x - means)
    total = tl.sum(count, axis=0, keep_dims=True)
    mean = tl.sum(means * count, axis=0, keep_dims=True) / tl.maximum(total, 1.0)
    spread = tl.sum(squares + count * (means - mean) * (means - mean), axis=0, keep_dims=True)
    at = tl.program_id(1) * cols + col
    parts = tl.num_programs(1) * cols
    tl.store(partial_ptr + at, total, mask=col < cols)
    tl.store(partial_ptr + parts + at, mean, mask=col < cols)
    tl.store(partial_ptr + 2 * parts + at, spread, mask=col < cols)


@triton.jit
def combine(partial_ptr, mean_ptr, variance_ptr, rows, cols, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    at = tl.arange(0, PARTS)[:, None] * cols + col
    inside = (col < cols) & (at >= 0)
    count = tl.load(partial_ptr + at, mask=inside, other=0.0)
    means = tl.load(partial_ptr + PARTS * cols + at, mask=inside, other=0.0)
    squares = tl.load(partial_ptr + 2 * PARTS * cols + at, mask=inside, other=0.0)
    mean = tl.sum(means * count, axis=0, keep_dims=True) / rows
    variance = tl.sum(squares + count * (means - mean) * (means - mean), axis=0, keep_dims=True) / rows
    tl.store(mean_ptr + col, mean, mask=col < cols)
    tl.store(variance_ptr + col, variance, mask=col < cols)


@triton.jit
def apply(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, variance_ptr, rows, cols, APPLY: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * APPLY + tl.arange(0, APPLY)[:, None]
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    mean = tl.load(mean_ptr + col, mask=col < cols)
    scale = tl.load(weight_ptr + col, mask=col < cols) / tl.sqrt(tl.load(variance_ptr + col, mask=col < cols) + 1e-5)
    x = tl.load(x_ptr + row * cols + col, mask=inside)
    tl.store(y_ptr + row * cols + col, (x - mean) * scale + tl.load(bias_ptr + col, mask=col < cols), mask=inside)


def custom_kernel(data):
    x, weight, bias = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    mean = torch.empty(cols, dtype=x.dtype, device=x.device)
    variance = torch.empty_like(mean)
    partial = torch.empty(3 * PARTS * cols, dtype=x.dtype, device=x.device)
    share = triton.cdiv(rows, PARTS)
    tiles = triton.cdiv(cols, BLOCK)
    statistics[(tiles, PARTS)](x, partial, rows, cols, share, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    combine[(triton.cdiv(cols, 16),)](partial, mean, variance, rows, cols, PARTS=PARTS, BLOCK=16, num_warps=4)
    apply[(triton.cdiv(rows, APPLY), triton.cdiv(cols, 256))](
        x, weight, bias, y, mean, variance, rows, cols, APPLY=APPLY, BLOCK=256, num_warps=WARPS
    )
    return y, mean, variance
