$precision$
# presage: tune PARTS = 4, 1, 16, 64
# presage: tune BM = 16, 32, 64
# presage: tune BN = 64, 32, 128
# presage: tune WARPS = 4, 2
# presage: tune STAGES = 2, 3
# presage: where BM * BN <= 1024 * WARPS and BM * BN >= 256 * WARPS
# presage: where BM == 16 or STAGES == 2
# presage: where PARTS >= 4 or STAGES == 2
#
# The keys are cut into PARTS; a program has BM queries and a part, goes over it BN keys at a time, and leaves its sums and
# their largest score for a second kernel that puts the parts together.
import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    $pointers$, total_ptr, largest_ptr, sum_ptr, heads, groups, queries, keys, dim$parameters$, scale, share,
    DIM: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PRECISION: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    q_ptr += head * queries * dim
    kept = $head$
    k_ptr += kept * keys * dim
    v_ptr += kept * keys * dim
    $slope$
    c = tl.arange(0, DIM)[None, :]
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    i = rows[:, None]
    q = tl.load(q_ptr + i * dim + c, mask=(i < queries) & (c < dim), other=0.0)
    begin = tl.maximum(tl.maximum($first$, 0) // BN * BN, part * share)
    stop = tl.minimum(tl.minimum($stop$, keys), part * share + share)
    $scores_of_tile$
        scores = tl.where((j >= $begin$) & (j < $end$) & (j < stop), scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        # A row that has seen no key yet has no largest score.
        anchor = tl.where(larger == -float("inf"), 0.0, larger)
        shrink = tl.exp(largest - anchor)
        weights = tl.exp(scores - anchor[:, None])
        v = tl.load(v_ptr + down * dim + c, mask=inside, other=0.0)
        total = total * shrink[:, None] + tl.dot(weights.to($type$), v$dot$)
        sum = sum * shrink + tl.sum(weights, 1)
        largest = larger
    at = (head * queries + rows) * PARTS + part
    tl.store(largest_ptr + at, largest, mask=rows < queries)
    tl.store(sum_ptr + at, sum, mask=rows < queries)
    tl.store(total_ptr + at[:, None] * dim + c, total, mask=(i < queries) & (c < dim))


@triton.jit
def combine(total_ptr, largest_ptr, sum_ptr, out_ptr, dim, PARTS: tl.constexpr, DIM: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)
    c = tl.arange(0, DIM)[None, :]
    largest = tl.load(largest_ptr + row * PARTS + part)
    shrink = tl.exp(largest - tl.max(largest, 0))
    sum = tl.sum(tl.load(sum_ptr + row * PARTS + part) * shrink, 0)
    totals = tl.load(total_ptr + (row * PARTS + part[:, None]) * dim + c, mask=c < dim, other=0.0)
    result = tl.sum(totals * shrink[:, None], 0)
    tl.store(out_ptr + row * dim + tl.arange(0, DIM), result / sum, mask=tl.arange(0, DIM) < dim)


def custom_kernel(data):
    $ins$ = data
    $sizes$
    groups, keys = k.shape[:2]
    out = torch.empty_like(q)
    rows = heads * queries
    total = torch.empty((rows, PARTS, dim), dtype=torch.float32, device=q.device)
    largest = torch.empty((rows, PARTS), dtype=torch.float32, device=q.device)
    sum = torch.empty((rows, PARTS), dtype=torch.float32, device=q.device)
    width = max(16, triton.next_power_of_2(dim))
    share = triton.cdiv(keys, PARTS * BN) * BN
    attend[(triton.cdiv(queries, BM), heads, PARTS)](
        $tensors$, total, largest, sum, heads, groups, queries, keys, dim$parameters$, dim**-0.5, share,
        DIM=width, PARTS=PARTS, BM=BM, BN=BN, PRECISION=PRECISION, num_warps=WARPS, num_stages=STAGES,
    )
    combine[(rows,)](total, largest, sum, out, dim, PARTS=PARTS, DIM=width, num_warps=1)
    return out
