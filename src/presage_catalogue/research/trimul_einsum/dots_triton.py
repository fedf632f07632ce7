# presage: problem trimul_einsum
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 64, 32, 128
# presage: tune BK = 32, 16
# presage: tune PLANES = 1, 0
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 2, 3
# presage: where PRECISION != 'tf32' or (WARPS == 4 and BM != 128 and STAGES == 2)
# presage: where BM != 32 or WARPS == 4
#
# A program computes BM * BM pairs (i, j) of one channel with tl.dot. PLANES copies both inputs so that each channel lies
# together, and copies the result back; else every program picks its channel out of memory.
import torch
import triton
import triton.language as tl


@triton.jit
def contract(
    left_ptr, right_ptr, y_ptr, n, si, sk, sh,
    BM: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):
    across = tl.cdiv(n, BM)
    h = tl.program_id(1)
    i = (tl.program_id(0) // across) * BM + tl.arange(0, BM)
    j = (tl.program_id(0) % across) * BM + tl.arange(0, BM)
    total = tl.zeros([BM, BM], tl.float32)
    for start in range(0, n, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(left_ptr + h * sh + i[:, None] * si + k[None, :] * sk, mask=(i[:, None] < n) & (k[None, :] < n), other=0.0)
        b = tl.load(right_ptr + h * sh + j[None, :] * si + k[:, None] * sk, mask=(j[None, :] < n) & (k[:, None] < n), other=0.0)
        total += tl.dot(a, b, input_precision=PRECISION)
    tl.store(y_ptr + h * sh + i[:, None] * si + j[None, :] * sk, total, mask=(i[:, None] < n) & (j[None, :] < n))


def custom_kernel(data):
    left, right = data
    n, _, hidden = left.shape
    if PLANES:
        left, right = left.permute(2, 0, 1).contiguous(), right.permute(2, 0, 1).contiguous()
    y = torch.empty_like(left)
    strides = (n, 1, n * n) if PLANES else (n * hidden, hidden, 1)
    grid = (triton.cdiv(n, BM) ** 2, hidden)
    contract[grid](left, right, y, n, *strides, BM=BM, BK=BK, PRECISION=PRECISION, num_warps=WARPS, num_stages=STAGES)
    return y.permute(1, 2, 0).contiguous() if PLANES else y
