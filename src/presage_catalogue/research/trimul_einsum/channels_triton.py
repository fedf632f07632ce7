# presage: problem trimul_einsum
# presage: tune BI = 8, 16, 4
# presage: tune BJ = 8, 16, 4
# presage: tune BH = 32, 16, 64
# presage: tune WARPS = 4, 8, 2
# presage: tune STAGES = 2, 4
# presage: where BI * BJ * BH <= 2048 * WARPS and BI * BJ * BH >= 256 * WARPS and (STAGES == 2 or WARPS == 4)
#
# A program sums BI * BJ pairs (i, j) of BH channels, one k after the other, by outer products.
import torch
import triton
import triton.language as tl


@triton.jit
def contract(left_ptr, right_ptr, y_ptr, n, hidden, BI: tl.constexpr, BJ: tl.constexpr, BH: tl.constexpr, STAGES: tl.constexpr):
    across = tl.cdiv(n, BJ)
    i = (tl.program_id(0) // across) * BI + tl.arange(0, BI)[:, None, None]
    j = (tl.program_id(0) % across) * BJ + tl.arange(0, BJ)[None, :, None]
    h = tl.program_id(1) * BH + tl.arange(0, BH)[None, None, :]
    total = tl.zeros([BI, BJ, BH], tl.float32)
    for k in tl.range(0, n, num_stages=STAGES):
        a = tl.load(left_ptr + (i * n + k) * hidden + h, mask=(i < n) & (h < hidden), other=0.0)
        b = tl.load(right_ptr + (j * n + k) * hidden + h, mask=(j < n) & (h < hidden), other=0.0)
        total += a * b
    tl.store(y_ptr + (i * n + j) * hidden + h, total, mask=(i < n) & (j < n) & (h < hidden))


def custom_kernel(data):
    left, right = data
    n, _, hidden = left.shape
    y = torch.empty_like(left)
    grid = (triton.cdiv(n, BI) * triton.cdiv(n, BJ), triton.cdiv(hidden, BH))
    contract[grid](left, right, y, n, hidden, BI=BI, BJ=BJ, BH=BH, STAGES=STAGES, num_warps=WARPS)
    return y
