$precision$
# presage: tune PARTS = 4, 2, 8, 16
# presage: tune ATOMIC = 0, 1
# presage: tune BM = 64, 16, 32
# presage: tune BN = 64, 128, 32
# presage: tune BK = 32, 64
# presage: tune WARPS = 4, 2
# presage: tune STAGES = 3
# presage: where BM * BN >= 512 * WARPS and BM * BN <= 1024 * WARPS
# presage: where BK == 32 or BM == 16
# presage: where ATOMIC == 0 or (PARTS == 4 and BK == 32)
#
# The sum over k$long_sums$ is cut into PARTS that programs of their own compute. They keep them for a second kernel to add up, or
# with ATOMIC add them to what was cleared before; the second kernel finishes the elements.
import torch
import triton
import triton.language as tl


@triton.jit
def parts(
    $pointers$, partial_ptr, m, n, k, share,
    ATOMIC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, $constant$,
):
    across = tl.cdiv(n, BN)
    down = tl.cdiv(m, BM)
    t = (tl.program_id(0) // (across * down)).to(tl.int64)
    tile = tl.program_id(0) % (across * down)
    batches = tl.num_programs(0) // (across * down)
    $select$
    row = tile // across * BM + tl.arange(0, BM)[:, None]
    col = tile % across * BN + tl.arange(0, BN)[None, :]
    begin = tl.program_id(1) * share
    end = tl.minimum(begin + share, k)
    $zeros$
    for start in range(begin, end, BK):
        across_k = start + tl.arange(0, BK)[None, :]
        down_k = start + tl.arange(0, BK)[:, None]
        a = tl.load($left$_ptr + $left_at$, mask=(row < m) & (across_k < end), other=0)
        $multiply$
    if not ATOMIC:
        partial_ptr += tl.program_id(1).to(tl.int64) * batches * $factors$ * m * n
    at = partial_ptr + t * $factors$ * m * n + row * n + col
    inside = (row < m) & (col < n)
    for value in tl.static_range($factors$):
        if value == 0:
            each = total
        else:
            each = $last$
        if ATOMIC:
            tl.atomic_add(at + value * m * n, each, mask=inside)
        else:
            tl.store(at + value * m * n, each, mask=inside)


@triton.jit
def combine($pointers$, $out_pointer$, partial_ptr, m, n, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    where = at // (m * n) * $factors$ * m * n + at % (m * n)
    total = tl.zeros([BLOCK], tl.float32)
    $last$ = tl.zeros([BLOCK], tl.float32)
    for part in tl.static_range(PARTS):
        $last$ += tl.load(partial_ptr + part * $factors$ * size + ($factors$ - 1) * m * n + where, mask=inside, other=0.0)
        if $factors$ > 1:
            total += tl.load(partial_ptr + part * $factors$ * size + where, mask=inside, other=0.0)
    row = (at % (m * n) // n).to(tl.int32)
    col = (at % n).to(tl.int32)
    $finish$
    tl.store($out_pointer$ + at, total, mask=inside)


def custom_kernel(data):
    $ins$, = data
    $sizes$
    out = $empty$
    size = out.numel()
    kept = 1 if ATOMIC else PARTS
    make = torch.zeros if ATOMIC else torch.empty
    partial = make(kept * $factors$ * size, dtype=torch.float32, device=out.device)
    share = triton.cdiv(k, PARTS * BK) * BK
    grid = ($batches$ * triton.cdiv(m, BM) * triton.cdiv(n, BN), PARTS)
    parts[grid](
        $ins$, partial, m, n, k, share,
        ATOMIC=ATOMIC, BM=BM, BN=BN, BK=BK, $passed$, num_warps=WARPS, num_stages=STAGES,
    )
    combine[(triton.cdiv(size, 1024),)]($ins$, out, partial, m, n, size, PARTS=kept, BLOCK=1024, num_warps=4)
    return out
