# presage: problem batchnorm_training
# presage: tune BLOCK = 32, 8, 16, 64
# presage: tune ROWS = 64, 32, 128, 256
# presage: tune WARPS = 4, 8
# presage: tune METHOD = 0, 1
# presage: where METHOD == 0 or (ROWS == 64 and WARPS == 4)
# presage: where BLOCK * ROWS <= 8192
#
# A program takes BLOCK columns, ROWS rows at a time, once for the statistics and again for the result. METHOD 0 is
# Welford's, 1 takes the difference of the mean of squares and the squared mean.
import torch
import triton
import triton.language as tl


@triton.jit
def batchnorm(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, variance_ptr, rows, cols, METHOD: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr
):
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    count = tl.zeros([ROWS, BLOCK], tl.float32)
    means = tl.zeros([ROWS, BLOCK], tl.float32)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (col < cols)
        x = tl.load(x_ptr + row.to(tl.int64) * cols + col, mask=inside, other=0.0)
        if METHOD == 0:
            count += tl.where(inside, 1.0, 0.0)
            apart = tl.where(inside, x - means, 0.0)
            means += apart / tl.maximum(count, 1.0)
            squares += apart * (x - means)
        else:
            means += x
            squares += x * x
    if METHOD == 0:
        mean = tl.sum(means * count, axis=0, keep_dims=True) / rows
        variance = tl.sum(squares + count * (means - mean) * (means - mean), axis=0, keep_dims=True) / rows
    else:
        mean = tl.sum(means, axis=0, keep_dims=True) / rows
        variance = tl.maximum(tl.sum(squares, axis=0, keep_dims=True) / rows - mean * mean, 0.0)
    tl.store(mean_ptr + col, mean, mask=col < cols)
    tl.store(variance_ptr + col, variance, mask=col < cols)
    scale = tl.load(weight_ptr + col, mask=col < cols) / tl.sqrt(variance + 1e-5)
    bias = tl.load(bias_ptr + col, mask=col < cols)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (col < cols)
        at = row.to(tl.int64) * cols + col
        tl.store(y_ptr + at, (tl.load(x_ptr + at, mask=inside) - mean) * scale + bias, mask=inside)


def custom_kernel(data):
    x, weight, bias = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    mean = torch.empty(cols, dtype=x.dtype, device=x.device)
    variance = torch.empty_like(mean)
    batchnorm[(triton.cdiv(cols, BLOCK),)](
        x, weight, bias, y, mean, variance, rows, cols, METHOD=METHOD, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS
    )
    return y, mean, variance
