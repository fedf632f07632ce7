# presage: problem trimul
# presage: tune PRECISION = ieee, tf32x3, tf32
# presage: tune BM = 64, 32, 128
# presage: tune BN = 32, 64
# presage: tune BS = 64, 32
# presage: tune PLANES = 1, 0
# presage: tune WARPS = 4, 8
# presage: where PRECISION != 'ieee' or BM * BN <= 512 * WARPS
# presage: where BM * BN <= 1024 * WARPS and (PRECISION != 'tf32' or (WARPS == 4 and PLANES == 1)) and (WARPS == 4 or PLANES == 1 or BM == 64)
#
# Three launches: norm and projections of BM pairs, BN columns at a time; the contraction in tiles of BS * BS for each
# channel; and the second norm with the output. PLANES keeps each channel of the intermediate results together.
import torch
import triton
import triton.language as tl


@triton.jit
def normal_rows(ptr, gamma_ptr, beta_ptr, row, rows, width, sr, sp, BLOCK: tl.constexpr):
    p = tl.arange(0, BLOCK)[None, :]
    inside = (row[:, None] < rows) & (p < width)
    x = tl.load(ptr + row[:, None] * sr + p * sp, mask=inside, other=0.0)
    mean = tl.sum(x, axis=1, keep_dims=True) / width
    x = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / width + 1e-5)
    gamma = tl.load(gamma_ptr + p, mask=p < width, other=0.0)
    return x * scale * gamma + tl.load(beta_ptr + p, mask=p < width, other=0.0)


@triton.jit
def times(x, w_ptr, depth, j, width, BLOCK: tl.constexpr, PRECISION: tl.constexpr):
    p = tl.arange(0, BLOCK)[:, None]
    w = tl.load(w_ptr + p * width + j[None, :], mask=(p < depth) & (j[None, :] < width), other=0.0)
    return tl.dot(x, w, input_precision=PRECISION)


@triton.jit
def project(
    z_ptr, mask_ptr, gamma_ptr, beta_ptr, proj_ptr, gate_ptr, sides_ptr, rows, c, width, sr, sh,
    BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr, PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    x = normal_rows(z_ptr, gamma_ptr, beta_ptr, row, rows, c, c, 1, BC)
    mask = tl.load(mask_ptr + row, mask=row < rows, other=0.0)
    for start in range(0, width, BN):
        j = start + tl.arange(0, BN)
        value = times(x, proj_ptr, c, j, width, BC, PRECISION)
        gate = times(x, gate_ptr, c, j, width, BC, PRECISION)
        side = mask[:, None] * value / (1.0 + tl.exp(-gate))
        tl.store(sides_ptr + row[:, None] * sr + j[None, :] * sh, side, mask=(row[:, None] < rows) & (j[None, :] < width))


@triton.jit
def contract(
    sides_ptr, sums_ptr, n, hidden, sr, sh, tr, th, BS: tl.constexpr, PRECISION: tl.constexpr,
):
    across = tl.cdiv(n, BS)
    h = tl.program_id(1)
    i = (tl.program_id(0) // across) * BS + tl.arange(0, BS)[:, None]
    j = (tl.program_id(0) % across) * BS + tl.arange(0, BS)[None, :]
    total = tl.zeros([BS, BS], tl.float32)
    for start in range(0, n, 32):
        k = start + tl.arange(0, 32)
        a = tl.load(sides_ptr + h * sh + (i * n + k[None, :]) * sr, mask=(i < n) & (k[None, :] < n), other=0.0)
        b = tl.load(sides_ptr + (hidden + h) * sh + (j * n + k[:, None]) * sr, mask=(j < n) & (k[:, None] < n), other=0.0)
        total += tl.dot(a, b, input_precision=PRECISION)
    tl.store(sums_ptr + h * th + (i * n + j) * tr, total, mask=(i < n) & (j < n))


@triton.jit
def finish(
    z_ptr, gamma_ptr, beta_ptr, out_gate_ptr, sums_ptr, gamma_out_ptr, beta_out_ptr, out_ptr, y_ptr,
    rows, c, hidden, tr, th,
    BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr, BH: tl.constexpr, PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    x = normal_rows(z_ptr, gamma_ptr, beta_ptr, row, rows, c, c, 1, BC)
    s = normal_rows(sums_ptr, gamma_out_ptr, beta_out_ptr, row, rows, hidden, tr, th, BH)
    for start in range(0, c, BN):
        j = start + tl.arange(0, BN)
        value = times(s, out_ptr, hidden, j, c, BH, PRECISION)
        gate = times(x, out_gate_ptr, c, j, c, BC, PRECISION)
        y = value / (1.0 + tl.exp(-gate))
        tl.store(y_ptr + row[:, None] * c + j[None, :], y, mask=(row[:, None] < rows) & (j[None, :] < c))


def custom_kernel(data):
    z, mask, gamma, beta, w_proj, w_gate, w_out_gate, gamma_out, beta_out, w_out = data
    (n, _, c), hidden = z.shape, w_out.shape[0]
    rows = n * n
    sides = torch.empty(2 * rows * hidden, dtype=z.dtype, device=z.device)
    sums = torch.empty(rows * hidden, dtype=z.dtype, device=z.device)
    y = torch.empty_like(z)
    sr, sh, tr, th = (1, rows, 1, rows) if PLANES else (2 * hidden, 1, hidden, 1)
    blocks = {"BC": max(16, triton.next_power_of_2(c)), "PRECISION": PRECISION, "num_warps": WARPS}
    project[(triton.cdiv(rows, BM),)](
        z, mask, gamma, beta, w_proj, w_gate, sides, rows, c, 2 * hidden, sr, sh, BM=BM, BN=BN, **blocks,
    )
    contract[(triton.cdiv(n, BS) ** 2, hidden)](
        sides, sums, n, hidden, sr, sh, tr, th, BS=BS, PRECISION=PRECISION, num_warps=WARPS,
    )
    finish[(triton.cdiv(rows, BM),)](
        z, gamma, beta, w_out_gate, sums, gamma_out, beta_out, w_out, y, rows, c, hidden, tr, th,
        BM=BM, BN=BN, BH=max(16, triton.next_power_of_2(hidden)), **blocks,
    )
    return y
