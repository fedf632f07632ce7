# presage: tune BLOCK = 512, 128, 256, 1024, 2048
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune PROGRAMS = 0, 528, 2112
# presage: tune TIES = $ties$
# presage: where BLOCK >= 32 * WARPS and (TIES == 'first' or PROGRAMS == 0 and BLOCK <= 512)
#
# A program computes BLOCK outputs, or PROGRAMS of them walk over the blocks. It goes through the windows in the order of
# rows; of equal elements the first or the last is kept.
import torch
import triton
import triton.language as tl


@triton.jit
def pool(
    x_ptr, y_ptr, index_ptr, size, h, w, rows, cols,
    HIGH: tl.constexpr, WIDE: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, BLOCK: tl.constexpr,
    LAST: tl.constexpr,
):
    for block in range(tl.program_id(0), tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        corner = at // cols % rows * DOWN * w + at % cols * ACROSS
        plane_ptr = x_ptr + at // (rows * cols) * (h * w)
        largest = tl.full([BLOCK], -float("inf"), tl.float32)
        place = corner
        for u in tl.static_range(HIGH):
            for v in tl.static_range(WIDE):
                x = tl.load(plane_ptr + corner + u * w + v, mask=inside, other=0.0)
                better = (x >= largest) if LAST else (x > largest)
                place = tl.where(better, corner + u * w + v, place)
                largest = tl.maximum(largest, x)
        tl.store(y_ptr + at, largest, mask=inside)
        tl.store(index_ptr + at, place.to(tl.int64), mask=inside)


def custom_kernel(data):
    x, window, stride = data
    n, c, h, w = x.shape
    rows, cols = (h - window) // stride + 1, (w - window) // stride + 1
    y = torch.empty((n, c, rows, cols), dtype=x.dtype, device=x.device)
    index = torch.empty(y.shape, dtype=torch.int64, device=x.device)
    blocks = triton.cdiv(y.numel(), BLOCK)
    pool[(min(blocks, PROGRAMS) if PROGRAMS else blocks,)](
        x, y, index, y.numel(), h, w, rows, cols,
        HIGH=window, WIDE=window, DOWN=stride, ACROSS=stride, BLOCK=BLOCK, LAST=TIES == "last", num_warps=WARPS,
    )
    return y, index
