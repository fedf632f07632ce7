# presage: tune BM = 256, 4, 32, 1024
# presage: tune BN = 1, 32, 128
# presage: tune WARPS = 4, 1, 8
# presage: tune SEM = relaxed, acq_rel
# presage: where BM * BN >= 32 * WARPS and BM * BN <= 8192
# presage: where SEM == "relaxed" or WARPS == 4
#
# A program adds BM rows of BN columns of x to the result, which is cleared before; SEM is the order that the additions
# keep among themselves and with others.
import torch
import triton
import triton.language as tl


@triton.jit
def scatter(x_ptr, indices_ptr, y_ptr, n, width, BM: tl.constexpr, BN: tl.constexpr, SEM: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    c = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inside = (r < n) & (c < width)
    target = tl.load(indices_ptr + r, mask=r < n, other=0)
    x = tl.load(x_ptr + r * width + c, mask=inside, other=0.0)
    tl.atomic_add(y_ptr + target * width + c, x, mask=inside, sem=SEM)


def custom_kernel(data):
    x, indices, targets = data
    y = torch.zeros(($scatter_shape$,), dtype=torch.float32, device=x.device)
    n, width = x.shape[0], $scatter_width$
    grid = (triton.cdiv(n, BM), triton.cdiv(width, BN))
    scatter[grid](x, indices, y, n, width, BM=BM, BN=BN, SEM=SEM, num_warps=WARPS)
    return y
