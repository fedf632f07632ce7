# presage: problem batched_matmul
# presage: tune PRECISION = ieee, tf32x3
# presage: tune BM = 64, 32, 128
# presage: tune BN = 32, 64
# presage: tune BK = 32, 16, 64
# presage: tune WARPS = 4, 8, 2
# presage: tune STAGES = 3, 1
# presage: where BM * BN >= 256 * WARPS and BM * BN <= 2048 * WARPS
# presage: where BK <= 32 or PRECISION == 'tf32x3'
# presage: where STAGES == 3 or BK == 32
#
# A program computes BM * BN elements of one product. `ieee` multiplies in float32 on the ordinary units; `tf32x3`
# splits each factor into two TF32 numbers and adds three products on the tensor cores, which is as accurate.
import torch
import triton
import triton.language as tl


@triton.jit
def multiply(
    a_ptr, b_ptr, c_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):
    across = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * across
    t = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    a_ptr += t * m * k
    b_ptr += t * k * n
    c_ptr += t * m * n
    row = tile // across * BM + tl.arange(0, BM)[:, None]
    col = tile % across * BN + tl.arange(0, BN)[None, :]
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
    (batch, m, k), n = a.shape, b.shape[2]
    c = torch.empty((batch, m, n), dtype=a.dtype, device=a.device)
    grid = (batch * triton.cdiv(m, BM) * triton.cdiv(n, BN),)
    multiply[grid](
        a, b, c, m, n, k,
        BM=BM, BN=BN, BK=BK, PRECISION=PRECISION, num_warps=WARPS, num_stages=STAGES,
    )
    return c
