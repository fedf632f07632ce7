# presage: problem matmul_sum_rows
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 64, 32, 128
# presage: tune BN = 64, 32, 128
# presage: tune BK = 32, 16
# presage: tune WARPS = 4, 8
# presage: tune STRIPE = 1, 8
# presage: where BM * BN >= 512 * WARPS and BM * BN <= 2048 * WARPS
# presage: where PRECISION != 'tf32' or BK == 16
#
# The whole product, in tiles of BM * BN; a program adds up the rows of STRIPE tiles and adds that to the result atomically.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(
    a_ptr, b_ptr, y_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STRIPE: tl.constexpr, PRECISION: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    row = rows[:, None]
    total = tl.zeros([BM], tl.float32)
    first = tl.program_id(1) * STRIPE * BN
    for left in range(first, tl.minimum(first + STRIPE * BN, n), BN):
        col = left + tl.arange(0, BN)[None, :]
        tile = tl.zeros([BM, BN], tl.float32)
        for start in range(0, k, BK):
            across_k = start + tl.arange(0, BK)[None, :]
            down_k = start + tl.arange(0, BK)[:, None]
            a = tl.load(a_ptr + row * k + across_k, mask=(row < m) & (across_k < k), other=0.0)
            b = tl.load(b_ptr + down_k * n + col, mask=(down_k < k) & (col < n), other=0.0)
            tile += tl.dot(a, b, input_precision=PRECISION)
        total += tl.sum(tile, 1)
    tl.atomic_add(y_ptr + rows, total, mask=rows < m)


def custom_kernel(data):
    a, b = data
    (m, k), n = a.shape, b.shape[1]
    y = torch.zeros((m,), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, BM), triton.cdiv(n, BN * STRIPE))
    multiply[grid](
        a, b, y, m, n, k,
        BM=BM, BN=BN, BK=BK, STRIPE=STRIPE, PRECISION=PRECISION, num_warps=WARPS,
    )
    return y
