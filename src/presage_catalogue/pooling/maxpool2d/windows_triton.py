# presage: problem maxpool2d
# presage: tune METHOD = direct, separable
# presage: tune BLOCK = 512, 128, 256, 1024, 2048
# presage: tune WARPS = 4, 2, 8
# presage: where BLOCK >= 32 * WARPS
#
# A program computes BLOCK outputs. `direct` reads every element of their windows; `separable` leaves the maxima along
# the rows in memory, and a second launch takes the maxima of those down the columns.
import torch
import triton
import triton.language as tl


@triton.jit
def pool(
    x_ptr, y_ptr, size, h, w, rows, cols,
    HIGH: tl.constexpr, WIDE: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, BLOCK: tl.constexpr,
):
    """Windows of HIGH by WIDE elements, DOWN and ACROSS apart."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    plane = at // (rows * cols)
    corner_ptr = x_ptr + (plane * h + at // cols % rows * DOWN) * w + at % cols * ACROSS
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    for u in tl.static_range(HIGH):
        for v in tl.static_range(WIDE):
            largest = tl.maximum(largest, tl.load(corner_ptr + u * w + v, mask=inside, other=0.0))
    tl.store(y_ptr + at, largest, mask=inside)


def launch(x, y, high, wide, down, across):
    h, w = x.shape[2:]
    size, (rows, cols) = y.numel(), y.shape[2:]
    grid = (triton.cdiv(size, BLOCK),)
    pool[grid](
        x, y, size, h, w, rows, cols,
        HIGH=high, WIDE=wide, DOWN=down, ACROSS=across, BLOCK=BLOCK, num_warps=WARPS,
    )


def custom_kernel(data):
    x, window, stride = data
    n, c, h, w = x.shape
    rows, cols = (h - window) // stride + 1, (w - window) // stride + 1
    y = torch.empty((n, c, rows, cols), dtype=x.dtype, device=x.device)
    if METHOD == "direct":
        launch(x, y, window, window, stride, stride)
    else:
        along = torch.empty((n, c, h, cols), dtype=x.dtype, device=x.device)
        launch(x, along, 1, window, 1, stride)
        launch(along, y, window, 1, stride, 1)
    return y
