# presage: problem chunk_cumsum_gates
# presage: tune METHOD = scan, dot
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BH = 32, 16, 64, 8
# presage: tune CHUNKS = 1, 2, 4
# presage: tune WARPS = 4, 1, 2, 8
# presage: where (METHOD == 'dot' or PRECISION == 'ieee') and (METHOD == 'scan' or (CHUNKS == 1 and BH >= 16))
# presage: where 64 * BH * CHUNKS >= 256 * WARPS and 64 * BH * CHUNKS <= 4096 * WARPS
#
# A program sums CHUNKS chunks of BH heads, by a scan along the tokens or by a product with a triangle of ones.
import torch
import triton
import triton.language as tl


@triton.jit
def sums(
    g_ptr, y_ptr, length, heads,
    BH: tl.constexpr, CHUNKS: tl.constexpr, METHOD: tl.constexpr, PRECISION: tl.constexpr,
):
    t = tl.program_id(0) * 64 * CHUNKS + tl.arange(0, 64 * CHUNKS)[:, None]
    h = tl.program_id(1) * BH + tl.arange(0, BH)[None, :]
    at = (tl.program_id(2).to(tl.int64) * length + t) * heads + h
    inside = (t < length) & (h < heads)
    g = tl.load(g_ptr + at, mask=inside, other=0.0)
    if METHOD == "scan":
        y = tl.reshape(tl.cumsum(tl.reshape(g, [CHUNKS, 64, BH]), axis=1), [64 * CHUNKS, BH])
    else:
        s = tl.arange(0, 64)
        y = tl.dot((s[:, None] >= s[None, :]).to(tl.float32), g, input_precision=PRECISION)
    tl.store(y_ptr + at, y, mask=inside)


def custom_kernel(data):
    (g,) = data
    batch, length, heads = g.shape
    y = torch.empty_like(g)
    grid = (triton.cdiv(length, 64 * CHUNKS), triton.cdiv(heads, BH), batch)
    sums[grid](g, y, length, heads, BH=BH, CHUNKS=CHUNKS, METHOD=METHOD, PRECISION=PRECISION, num_warps=WARPS)
    return y
