# presage: problem matmul
# presage: tune PRECISION = ieee, tf32x3
# presage: tune BM = 64, 32, 128
# presage: tune BN = 64, 32, 128
# presage: tune BK = 16, 32
# presage: tune GROUP = 8, 1
# presage: tune WARPS = 4, 8
# presage: tune STAGES = 3, 2
# presage: where BM * BN <= 8192 or (PRECISION == 'tf32x3' and WARPS == 8)
# presage: where BM * BN >= 2048 and BM * BN >= 512 * WARPS
# presage: where GROUP == 8 or STAGES == 3
# presage: where WARPS == 8 or BK == 32 or PRECISION == 'ieee'
# presage: where STAGES == 3 or PRECISION == 'tf32x3'
#
# A program computes BM * BN elements. `ieee` multiplies in float32 on the ordinary units; `tf32x3` splits each factor
# into two TF32 numbers and adds three products on the tensor cores, which is as accurate. Programs go down GROUP rows
# of tiles at a time, so that neighbours share tiles in cache.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(
    a_ptr, b_ptr, c_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr,
):
    across = tl.cdiv(n, BN)
    first = tl.program_id(0) // (GROUP * across) * GROUP
    height = tl.minimum(tl.cdiv(m, BM) - first, GROUP)
    inside = tl.program_id(0) % (GROUP * across)
    row = (first + inside % height) * BM + tl.arange(0, BM)[:, None]
    col = inside // height * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, k, BK):
        across_k = start + tl.arange(0, BK)[None, :]
        down_k = start + tl.arange(0, BK)[:, None]
        a = tl.load(a_ptr + row * k + across_k, mask=(row < m) & (across_k < k), other=0.0)
        b = tl.load(b_ptr + down_k * n + col, mask=(down_k < k) & (col < n), other=0.0)
        total += tl.dot(a, b, input_precision=PRECISION)
    tl.store(c_ptr + row * n + col, total, mask=(row < m) & (col < n))


def custom_kernel(data):
    a, b = data
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    multiply[grid](
        a, b, c, m, n, k,
        BM=BM, BN=BN, BK=BK, GROUP=GROUP, PRECISION=PRECISION, num_warps=WARPS, num_stages=STAGES,
    )
    return c
