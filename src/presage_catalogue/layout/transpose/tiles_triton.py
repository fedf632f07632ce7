# presage: problem transpose
# presage: tune BM = 32, 16, 64, 128
# presage: tune BN = 32, 16, 64, 128
# presage: tune WARPS = 4, 8, 1
# presage: tune TURN = 1, 0
# presage: where BM * BN >= 64 * WARPS and BM * BN <= 8192
# presage: where TURN == 1 or WARPS == 4
#
# A program moves a tile of BM rows and BN columns. TURN hands it over in shared memory, so that both sides see whole
# lines; without it the tile is stored in the layout in which it was read.
import torch
import triton
import triton.language as tl


@triton.jit
def transpose_tile(x_ptr, y_ptr, rows, cols, BM: tl.constexpr, BN: tl.constexpr, TURN: tl.constexpr):
    across = tl.cdiv(cols, BN)
    first_row = tl.program_id(0) // across * BM
    first_col = tl.program_id(0) % across * BN
    r = first_row + tl.arange(0, BM)
    c = first_col + tl.arange(0, BN)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None].to(tl.int64) * cols + c[None, :], mask=inside)
    if TURN:
        outside = (c[:, None] < cols) & (r[None, :] < rows)
        tl.store(y_ptr + c[:, None].to(tl.int64) * rows + r[None, :], tl.trans(x), mask=outside)
    else:
        tl.store(y_ptr + c[None, :].to(tl.int64) * rows + r[:, None], x, mask=inside)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty((cols, rows), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, BM) * triton.cdiv(cols, BN),)
    transpose_tile[grid](x, y, rows, cols, BM=BM, BN=BN, TURN=TURN, num_warps=WARPS)
    return y
