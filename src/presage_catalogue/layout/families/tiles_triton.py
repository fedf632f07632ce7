# presage: tune BM = 8, 1, 32, 64
# presage: tune BN = 128, 32, 512, 1024
# presage: tune WARPS = 4, 1, 8
# presage: tune TURN = 0, 1
# presage: tune ORDER = 0, 1
# presage: where BM * BN >= 64 * WARPS and BM * BN <= 16384
# presage: where TURN == 0 or BM >= 8
#
# A program makes BM rows of BN columns of y. TURN gathers the tile with its columns as rows and turns it over in shared
# memory before it is written. ORDER 0 takes the tiles along y's rows, 1 down its columns.
import torch
import triton
import triton.language as tl


@triton.jit
def over_tiles(
    $pointers$, $sizes$, out_rows, out_cols,
    BM: tl.constexpr, BN: tl.constexpr, TURN: tl.constexpr, ORDER: tl.constexpr,
):
    pid = tl.program_id(0)
    if ORDER:
        first_r = pid % tl.cdiv(out_rows, BM) * BM
        first_c = pid // tl.cdiv(out_rows, BM) * BN
    else:
        first_r = pid // tl.cdiv(out_cols, BN) * BM
        first_c = pid % tl.cdiv(out_cols, BN) * BN
    rows_of_tile = first_r + tl.arange(0, BM)
    cols_of_tile = first_c + tl.arange(0, BN)
    if TURN:
        r = rows_of_tile[None, :]
        c = cols_of_tile[:, None]
    else:
        r = rows_of_tile[:, None]
        c = cols_of_tile[None, :]
    row_inside = r < out_rows
    col_inside = c < out_cols
    inside = row_inside & col_inside
    $fetch$
    if TURN:
        value = tl.trans(tl.broadcast_to(value, [BN, BM]))
    to = rows_of_tile[:, None] * out_cols + cols_of_tile[None, :]
    tl.store($out$_ptr + to, value, mask=(rows_of_tile[:, None] < out_rows) & (cols_of_tile[None, :] < out_cols))


def custom_kernel(data):
    $unpack$
    $empty$
    out_rows, out_cols = $rows$, $cols$
    grid = (triton.cdiv(out_rows, BM) * triton.cdiv(out_cols, BN),)
    over_tiles[grid]($ins$, $out$, $sizes$, out_rows, out_cols, BM=BM, BN=BN, TURN=TURN, ORDER=ORDER, num_warps=WARPS)
    return $out$
