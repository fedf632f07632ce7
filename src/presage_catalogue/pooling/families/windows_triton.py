# presage: tune METHOD = direct, separable
# presage: tune BLOCK = 512, 128, 256, 1024, 2048
# presage: tune WARPS = 4, 2, 8
# presage: tune PROGRAMS = 0, 1056
# presage: where BLOCK >= 32 * WARPS
#
# A program computes BLOCK outputs, or PROGRAMS of them walk over the blocks. `direct` reads every element of their
# windows; `separable` leaves what the windows' rows come to in memory, and a second launch merges those.
import torch
import triton
import triton.language as tl


@triton.jit
def pool(
    x_ptr, y_ptr, size, h, w, rows, cols,
    HIGH: tl.constexpr, WIDE: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr, BLOCK: tl.constexpr,
    FIRST: tl.constexpr, LAST: tl.constexpr, COUNT: tl.constexpr,
):
    """Windows of HIGH by WIDE elements, DOWN and ACROSS apart; the FIRST launch takes elements, the LAST finishes."""
    for block in range(tl.program_id(0), tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        corner_ptr = x_ptr + (at // (rows * cols) * h + at // cols % rows * DOWN) * w + at % cols * ACROSS
        state = tl.full([BLOCK], $start$, tl.float32)
        for u in tl.static_range(HIGH):
            for v in tl.static_range(WIDE):
                x = tl.load(corner_ptr + u * w + v, mask=inside, other=0.0)
                if FIRST:
                    state = $take$
                else:
                    a = state
                    b = x
                    state = $merge$
        if LAST:
            state = $finish$
        tl.store(y_ptr + at, state, mask=inside)


def launch(x, y, high, wide, down, across, first, last, count):
    h, w = x.shape[2:]
    size, (rows, cols) = y.numel(), y.shape[2:]
    blocks = triton.cdiv(size, BLOCK)
    pool[(min(blocks, PROGRAMS) if PROGRAMS else blocks,)](
        x, y, size, h, w, rows, cols, HIGH=high, WIDE=wide, DOWN=down, ACROSS=across, BLOCK=BLOCK,
        FIRST=first, LAST=last, COUNT=count, num_warps=WARPS,
    )


$window_sizes$
    if METHOD == "direct":
        launch(x, y, high, window, down, stride, True, True, high * window)
    else:
        along = torch.empty((n, c, h, cols), dtype=x.dtype, device=x.device)
        launch(x, along, 1, window, 1, stride, True, False, 1)
        launch(along, y, high, 1, down, 1, False, True, high * window)
    return y.view($shape$)
