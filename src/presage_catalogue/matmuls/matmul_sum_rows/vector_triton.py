# presage: problem matmul_sum_rows
# presage: tune ROWS = 4, 1, 16
# presage: tune LINE = 512, 128, 2048
# presage: tune HEIGHT = 4, 1, 16
# presage: tune WARPS = 4, 1, 8
# presage: where ROWS * LINE >= 128 * WARPS and ROWS * LINE <= 4096 * WARPS
# presage: where HEIGHT * LINE <= 4096 * WARPS
#
# The rows of b are added up first, ROWS of them per program; then HEIGHT rows of a per program are multiplied with their
# sums. Both read LINE elements of a row at a time.
import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(b_ptr, column_ptr, n, k, ROWS: tl.constexpr, LINE: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros([ROWS, LINE], tl.float32)
    for start in range(0, n, LINE):
        j = start + tl.arange(0, LINE)[None, :]
        sums += tl.load(b_ptr + row[:, None] * n + j, mask=(row[:, None] < k) & (j < n), other=0.0)
    tl.store(column_ptr + row, tl.sum(sums, 1), mask=row < k)


@triton.jit
def dots(a_ptr, column_ptr, y_ptr, m, k, HEIGHT: tl.constexpr, LINE: tl.constexpr):
    row = tl.program_id(0) * HEIGHT + tl.arange(0, HEIGHT)
    sums = tl.zeros([HEIGHT, LINE], tl.float32)
    for start in range(0, k, LINE):
        p = start + tl.arange(0, LINE)[None, :]
        a = tl.load(a_ptr + row[:, None] * k + p, mask=(row[:, None] < m) & (p < k), other=0.0)
        sums += a * tl.load(column_ptr + p, mask=p < k, other=0.0)
    tl.store(y_ptr + row, tl.sum(sums, 1), mask=row < m)


def custom_kernel(data):
    a, b = data
    (m, k), n = a.shape, b.shape[1]
    column = torch.empty((k,), dtype=torch.float32, device=a.device)
    y = torch.empty((m,), dtype=a.dtype, device=a.device)
    row_sums[(triton.cdiv(k, ROWS),)](b, column, n, k, ROWS=ROWS, LINE=LINE, num_warps=WARPS)
    dots[(triton.cdiv(m, HEIGHT),)](a, column, y, m, k, HEIGHT=HEIGHT, LINE=LINE, num_warps=WARPS)
    return y
