# presage: problem histogram
# presage: tune METHOD = local, narrow, wide
# presage: tune BLOCK = 2048, 1024, 4096
# presage: tune WARPS = 4, 8
# presage: tune PROGRAMS = 1056, 264, 4224
#
# PROGRAMS programs walk over the elements. `local` counts a block of them at a time into a histogram of the program's
# own, which fits for few bins, and adds that to the result at the end; `narrow` adds to 32-bit counts in memory, which
# are widened afterwards, `wide` to the 64-bit result at once.
import torch
import triton
import triton.language as tl

MOST_LOCAL = 4096


@triton.jit
def count_local(x_ptr, counts_ptr, n, bins, BLOCK: tl.constexpr, ROOM: tl.constexpr):
    counts = tl.zeros([ROOM], tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        # There is room for one bin more, which takes what lies past the end.
        counts += tl.histogram(tl.load(x_ptr + at, mask=at < n, other=bins), ROOM)
    bin = tl.arange(0, ROOM)
    tl.atomic_add(counts_ptr + bin, counts.to(tl.int64), mask=(bin < bins) & (counts > 0), sem="relaxed")


@triton.jit
def count_in_memory(x_ptr, counts_ptr, n, one, BLOCK: tl.constexpr):
    ones = tl.zeros([BLOCK], counts_ptr.dtype.element_ty) + one
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        x = tl.load(x_ptr + at, mask=inside, other=0)
        tl.atomic_add(counts_ptr + x, ones, mask=inside, sem="relaxed")


def custom_kernel(data):
    x, bins = data
    n = x.numel()
    grid = (min(PROGRAMS, triton.cdiv(n, BLOCK)),)
    if METHOD == "local" and bins < MOST_LOCAL:
        counts = torch.zeros(bins, dtype=torch.int64, device=x.device)
        # A histogram needs at least as many bins as the program has lanes.
        room = max(triton.next_power_of_2(bins + 1), 32 * WARPS)
        count_local[grid](x, counts, n, bins, BLOCK=BLOCK, ROOM=room, num_warps=WARPS)
        return counts
    dtype = torch.int64 if METHOD == "wide" else torch.int32
    counts = torch.zeros(bins, dtype=dtype, device=x.device)
    count_in_memory[grid](x, counts, n, 1, BLOCK=BLOCK, num_warps=WARPS)
    return counts.to(torch.int64)
