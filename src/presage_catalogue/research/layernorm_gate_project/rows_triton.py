# presage: problem layernorm_gate_project
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 64, 32, 128
# presage: tune BN = 32, 64, 128
# presage: tune FUSED = 1, 0
# presage: tune WARPS = 4, 8
# presage: where PRECISION != 'ieee' or BM * BN <= 512 * WARPS
# presage: where BM * BN <= 1024 * WARPS and (PRECISION != 'tf32' or (WARPS == 4 and BM == 64)) and (BM != 32 or WARPS == 4)
#
# A program normalises BM rows and multiplies them with BN columns of both matrices at once (FUSED), or a first launch
# normalises the rows and the second multiplies them; c fits into one block.
import torch
import triton
import triton.language as tl


@triton.jit
def normalise(x, inside, p, c, gamma_ptr, beta_ptr):
    mean = tl.sum(x, axis=1, keep_dims=True) / c
    x = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / c + 1e-5)
    gamma = tl.load(gamma_ptr + p, mask=p < c, other=0.0)
    return x * scale * gamma + tl.load(beta_ptr + p, mask=p < c, other=0.0)


@triton.jit
def normalise_rows(x_ptr, gamma_ptr, beta_ptr, n_ptr, rows, c, BM: tl.constexpr, BC: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    p = tl.arange(0, BC)[None, :]
    inside = (row < rows) & (p < c)
    x = tl.load(x_ptr + row * c + p, mask=inside, other=0.0)
    tl.store(n_ptr + row * c + p, normalise(x, inside, p, c, gamma_ptr, beta_ptr), mask=inside)


@triton.jit
def project(
    x_ptr, mask_ptr, gamma_ptr, beta_ptr, proj_ptr, gate_ptr, y_ptr, rows, c, hidden,
    BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr, FUSED: tl.constexpr, PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    p = tl.arange(0, BC)
    inside = (row[:, None] < rows) & (p[None, :] < c)
    n = tl.load(x_ptr + row[:, None] * c + p[None, :], mask=inside, other=0.0)
    if FUSED:
        n = normalise(n, inside, p[None, :], c, gamma_ptr, beta_ptr)
    mask = tl.load(mask_ptr + row, mask=row < rows, other=0.0)
    for start in range(0, hidden, BN):
        j = start + tl.arange(0, BN)
        there = (p[:, None] < c) & (j[None, :] < hidden)
        value = tl.dot(n, tl.load(proj_ptr + p[:, None] * hidden + j[None, :], mask=there, other=0.0), input_precision=PRECISION)
        gate = tl.dot(n, tl.load(gate_ptr + p[:, None] * hidden + j[None, :], mask=there, other=0.0), input_precision=PRECISION)
        y = mask[:, None] * value / (1.0 + tl.exp(-gate))
        tl.store(y_ptr + row[:, None] * hidden + j[None, :], y, mask=(row[:, None] < rows) & (j[None, :] < hidden))


def custom_kernel(data):
    x, mask, gamma, beta, w_proj, w_gate = data
    (rows, c), hidden = x.shape, w_proj.shape[1]
    y = torch.empty((rows, hidden), dtype=x.dtype, device=x.device)
    block = max(16, triton.next_power_of_2(c))
    if not FUSED:
        normal = torch.empty_like(x)
        normalise_rows[(triton.cdiv(rows, 16),)](x, gamma, beta, normal, rows, c, BM=16, BC=block)
        x = normal
    project[(triton.cdiv(rows, BM),)](
        x, mask, gamma, beta, w_proj, w_gate, y, rows, c, hidden,
        BM=BM, BN=BN, BC=block, FUSED=FUSED, PRECISION=PRECISION, num_warps=WARPS,
    )
    return y
