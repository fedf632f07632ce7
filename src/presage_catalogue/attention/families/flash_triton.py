$precision$
# presage: tune BM = 64, 16, 32, 128
# presage: tune BN = 64, 32, 128, 16
# presage: tune WARPS = 4, 2, 8
# presage: tune STAGES = 2, 1, 3
# presage: tune SKIP = 1, 0
# presage: where BM * BN <= 2048 * WARPS and BM * BN >= 256 * WARPS
# presage: where SKIP == 1 or (STAGES == 2 and WARPS == 4)
# presage: where STAGES == 2 or BM >= 64
#
# A program has BM queries and goes over their keys once, BN at a time; what it has so far shrinks when a larger score
# comes. With SKIP it leaves out the tiles that none of its queries sees.
import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    $pointers$, out_ptr, heads, groups, queries, keys, dim$parameters$, scale,
    DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SKIP: tl.constexpr, PRECISION: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    q_ptr += head * queries * dim
    out_ptr += head * queries * dim
    kept = $head$
    k_ptr += kept * keys * dim
    v_ptr += kept * keys * dim
    $slope$
    c = tl.arange(0, DIM)[None, :]
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    i = rows[:, None]
    q = tl.load(q_ptr + i * dim + c, mask=(i < queries) & (c < dim), other=0.0)
    begin = 0
    stop = keys
    if SKIP:
        begin = tl.maximum($first$, 0) // BN * BN
        stop = tl.minimum($stop$, keys)
    $scores_of_tile$
        scores = tl.where((j >= $begin$) & (j < $end$) & (j < keys), scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        # A row that has seen no key yet has no largest score.
        anchor = tl.where(larger == -float("inf"), 0.0, larger)
        shrink = tl.exp(largest - anchor)
        weights = tl.exp(scores - anchor[:, None])
        v = tl.load(v_ptr + down * dim + c, mask=inside, other=0.0)
        total = total * shrink[:, None] + tl.dot(weights.to($type$), v$dot$)
        sum = sum * shrink + tl.sum(weights, 1)
        largest = larger
    tl.store(out_ptr + i * dim + c, total / sum[:, None], mask=(i < queries) & (c < dim))


def custom_kernel(data):
    $ins$ = data
    $sizes$
    groups, keys = k.shape[:2]
    out = torch.empty_like(q)
    attend[(triton.cdiv(queries, BM), heads)](
        $tensors$, out, heads, groups, queries, keys, dim$parameters$, dim**-0.5,
        DIM=max(16, triton.next_power_of_2(dim)), BM=BM, BN=BN, SKIP=SKIP, PRECISION=PRECISION,
        num_warps=WARPS, num_stages=STAGES,
    )
    return out
