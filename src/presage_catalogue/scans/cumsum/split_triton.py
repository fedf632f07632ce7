# presage: problem cumsum
# presage: tune BLOCK = 2048, 512, 1024, 4096
# presage: tune TILES = 1, 2, 4
# presage: tune WARPS = 4, 8
#
# Rows are cut into chunks of TILES * BLOCK. The first launch sums every chunk, the second scans those sums, the third
# scans every chunk from its offset. A row of one chunk needs only the third.
import torch
import triton
import triton.language as tl


@triton.jit
def chunk_sums(x_ptr, sums_ptr, cols, chunks, TILES: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // chunks).to(tl.int64)
    first = tl.program_id(0) % chunks * (TILES * BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for tile in range(TILES):
        col = first + tile * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * cols + col, mask=col < cols, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def scan_sums(sums_ptr, offsets_ptr, chunks, BLOCK: tl.constexpr):
    start = tl.program_id(0) * chunks
    before = 0.0
    for first in range(0, chunks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        # One place to the left: a chunk's offset is the sum of those before it.
        sums = tl.load(sums_ptr + start + i - 1, mask=(i > 0) & (i < chunks), other=0.0)
        tl.store(offsets_ptr + start + i, before + tl.cumsum(sums, axis=0), mask=i < chunks)
        before += tl.sum(sums, axis=0)


@triton.jit
def scan_chunks(x_ptr, offsets_ptr, y_ptr, cols, chunks, TILES: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // chunks).to(tl.int64)
    first = tl.program_id(0) % chunks * (TILES * BLOCK)
    before = tl.load(offsets_ptr + tl.program_id(0)) if chunks > 1 else 0.0
    for tile in range(TILES):
        col = first + tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=0.0)
        tl.store(y_ptr + row * cols + col, before + tl.cumsum(x, axis=0), mask=col < cols)
        before += tl.sum(x, axis=0)


def custom_kernel(data):
    (x,) = data
    rows, cols = x.shape
    y = torch.empty_like(x)
    chunks = triton.cdiv(cols, TILES * BLOCK)
    sums = torch.empty(rows * chunks, dtype=x.dtype, device=x.device)
    offsets = torch.empty_like(sums)
    if chunks > 1:
        chunk_sums[(rows * chunks,)](x, sums, cols, chunks, TILES=TILES, BLOCK=BLOCK, num_warps=WARPS)
        scan_sums[(rows,)](sums, offsets, chunks, BLOCK=1024)
    scan_chunks[(rows * chunks,)](x, offsets, y, cols, chunks, TILES=TILES, BLOCK=BLOCK, num_warps=WARPS)
    return y
