# presage: tune BLOCK = 2048, 512, 1024, 4096
# presage: tune TILES = 1, 2, 4
# presage: tune WARPS = 4, 8, 2
#
# Rows are cut into chunks of TILES * BLOCK. The first launch finds every chunk's total, the second scans those, the
# third scans every chunk from its offset. A row of one chunk needs only the third.
import torch
import triton
import triton.language as tl


@triton.jit
def combine($arguments$):
    $combine$


@triton.jit
def chunk_totals($in_pointers$, partial_ptr, rows, cols, chunks, stride, TILES: tl.constexpr, BLOCK: tl.constexpr):
    ROWS: tl.constexpr = 1
    chunk = tl.program_id(0) + tl.zeros([1, 1], tl.int32)
    row = (chunk // chunks).to(tl.int64)
    lane = tl.arange(0, BLOCK)[None, :]
    $begin$
    for tile in range(TILES):
        col = (chunk % chunks * TILES + tile) * BLOCK + lane
        inside = col < cols
        seen = $seen$
        at = row * cols + $source$
        $load$
        $lift$
        $scan$
        $offset$
        $carry$
    $save$


@triton.jit
def scan_totals(partial_ptr, chunks, stride, BLOCK: tl.constexpr):
    ROWS: tl.constexpr = 1
    lane = tl.arange(0, BLOCK)[None, :]
    $begin$
    for first in range(0, chunks, BLOCK):
        inside = first + lane < chunks
        at = tl.program_id(0) * chunks + first + lane
        $load_states$
        $scan$
        $offset$
        $store_states$
        $carry$


@triton.jit
def scan_chunks($pointers$, partial_ptr, rows, cols, chunks, stride, TILES: tl.constexpr, BLOCK: tl.constexpr):
    chunk = tl.program_id(0) + tl.zeros([1, 1], tl.int32)
    row = (chunk // chunks).to(tl.int64)
    lane = tl.arange(0, BLOCK)[None, :]
    $restore$
    for tile in range(TILES):
        col = (chunk % chunks * TILES + tile) * BLOCK + lane
        inside = col < cols
        $scan_step$


def custom_kernel(data):
    $ins$, = data
    rows, cols = $first$.shape
    y = torch.empty_like($first$)
    chunks = triton.cdiv(cols, TILES * BLOCK)
    count = rows * chunks
    partial = torch.empty($count$ * count, dtype=torch.float32, device=$first$.device)
    sizes = {"TILES": TILES, "BLOCK": BLOCK, "num_warps": WARPS}
    if chunks > 1:
        chunk_totals[(count,)]($ins$, partial, rows, cols, chunks, count, **sizes)
        scan_totals[(rows,)](partial, chunks, count, BLOCK=256, num_warps=2)
    scan_chunks[(count,)]($ins$, y, partial, rows, cols, chunks, count, **sizes)
    return y
