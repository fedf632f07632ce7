# presage: problem cross_entropy
# presage: tune METHOD = online, twice
# presage: tune ROWS = 1, 2, 4
# presage: tune BLOCK = 1024, 512, 2048, 4096
# presage: tune WARPS = 4, 8, 1
# presage: where ROWS * BLOCK <= 4096
#
# A program takes ROWS rows, BLOCK columns at a time. `online` reads them once, with a maximum and a sum relative to it
# in every lane; `twice` finds the maximum first and reads the rows again, from cache, for the sum.
import torch
import triton
import triton.language as tl


@triton.jit
def loss_online(x_ptr, target_ptr, loss_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    # Finite, so that lanes without elements do not compute infinity minus infinity.
    largest = tl.full([ROWS, BLOCK], -3.0e38, tl.float32)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=-float("inf"))
        bigger = tl.maximum(largest, x)
        total = total * tl.exp(largest - bigger) + tl.exp(x - bigger)
        largest = bigger
    top = tl.max(largest, axis=1, keep_dims=True)
    total_row = tl.sum(total * tl.exp(largest - top), axis=1, keep_dims=True)
    target = tl.load(target_ptr + row, mask=row < rows, other=0)
    chosen = tl.load(x_ptr + row * cols + target, mask=row < rows, other=0.0)
    tl.store(loss_ptr + row, top + tl.log(total_row) - chosen, mask=row < rows)


@triton.jit
def loss_twice(x_ptr, target_ptr, loss_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    largest = tl.full([ROWS, BLOCK], -3.0e38, tl.float32)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=-float("inf"))
        largest = tl.maximum(largest, x)
    top = tl.max(largest, axis=1, keep_dims=True)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        inside = (row < rows) & (start + lane < cols)
        x = tl.load(x_ptr + row * cols + start + lane, mask=inside, other=-float("inf"))
        total += tl.exp(x - top)
    total_row = tl.sum(total, axis=1, keep_dims=True)
    target = tl.load(target_ptr + row, mask=row < rows, other=0)
    chosen = tl.load(x_ptr + row * cols + target, mask=row < rows, other=0.0)
    tl.store(loss_ptr + row, top + tl.log(total_row) - chosen, mask=row < rows)


def custom_kernel(data):
    logits, targets = data
    rows, cols = logits.shape
    loss = torch.empty(rows, dtype=logits.dtype, device=logits.device)
    kernel = loss_online if METHOD == "online" else loss_twice
    kernel[(triton.cdiv(rows, ROWS),)](logits, targets, loss, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=WARPS)
    return loss
