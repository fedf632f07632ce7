# presage: problem argmax
# presage: tune METHOD = pairs, keys, reduce
# presage: tune ROWS = 1, 2, 4
# presage: tune BLOCK = 1024, 512, 2048
# presage: tune WARPS = 4, 8, 1
# presage: where ROWS * BLOCK <= 4096
#
# A program searches ROWS rows, BLOCK columns at a time. `pairs` keeps the best value and its place in every lane;
# `keys` packs both into one 64-bit integer; `reduce` reduces every block on its own.
import torch
import triton
import triton.language as tl


@triton.jit
def argmax_pairs(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    best = tl.full([ROWS, BLOCK], -float("inf"), tl.float32)
    place = tl.zeros([ROWS, BLOCK], tl.int32) + lane
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=-float("inf"))
        place = tl.where(x > best, start + lane, place)
        best = tl.maximum(best, x)
    largest = tl.max(best, axis=1, keep_dims=True)
    first = tl.min(tl.where(best == largest, place, 2147483647), axis=1, keep_dims=True)
    tl.store(y_ptr + row, first.to(tl.int64), mask=row < rows)


@triton.jit
def argmax_keys(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    best = tl.full([ROWS, BLOCK], -9223372036854775808, tl.int64)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=-float("inf"))
        # Integers in the order of the floats, -0 being 0; an earlier place makes a larger key.
        bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
        ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
        best = tl.maximum(best, ordered * 4294967296 + (2147483647 - (start + lane)))
    key = tl.max(best, axis=1, keep_dims=True)
    tl.store(y_ptr + row, 2147483647 - (key & 0xFFFFFFFF), mask=row < rows)


@triton.jit
def argmax_reduce(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    best = tl.full([ROWS, 1], -float("inf"), tl.float32)
    place = tl.zeros([ROWS, 1], tl.int32)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=-float("inf"))
        largest = tl.max(x, axis=1, keep_dims=True)
        first = tl.min(tl.where(x == largest, start + lane, 2147483647), axis=1, keep_dims=True)
        place = tl.where(largest > best, first, place)
        best = tl.maximum(best, largest)
    tl.store(y_ptr + row, place.to(tl.int64), mask=row < rows)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty(rows, dtype=torch.int64, device=x.device)
    kernel = {"pairs": argmax_pairs, "keys": argmax_keys, "reduce": argmax_reduce}[METHOD]
    kernel[(triton.cdiv(rows, ROWS),)](x, y, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    return y
