$precision$
# presage: tune BM = 64, 16, 32
# presage: tune BN = 64, 128, 32
# presage: tune WARPS = 4, 2
# presage: tune LINE = 1024, 256
# presage: tune SKIP = 1, 0
# presage: where BM * BN <= 2048 * WARPS and BM * BN >= 256 * WARPS
# presage: where SKIP == 1 or LINE == 1024
#
# Three kernels with all scores in memory between them: tiles of BM * BN scores, the softmax of a row LINE scores at a
# time, and the weighted sums. With SKIP tiles that no query sees are left out of the first and the last.
import torch
import triton
import triton.language as tl


@triton.jit
def dots(
    $pointers$, scores_ptr, heads, groups, queries, keys, dim$parameters$, scale,
    DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SKIP: tl.constexpr, PRECISION: tl.constexpr,
):
    head = tl.program_id(2).to(tl.int64)
    kept = $head$
    $slope$
    c = tl.arange(0, DIM)[None, :]
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    start = tl.program_id(1) * BN
    j = start + tl.arange(0, BN)[None, :]
    down = start + tl.arange(0, BN)[:, None]
    begin = 0
    stop = keys
    if SKIP:
        begin = $first$
        stop = $stop$
    if (start < stop) & (start + BN > begin):
        q = tl.load(q_ptr + (head * queries + i) * dim + c, mask=(i < queries) & (c < dim), other=0.0)
        k = tl.load(k_ptr + (kept * keys + down) * dim + c, mask=(down < keys) & (c < dim), other=0.0)
        scores = tl.dot(q, tl.trans(k)$dot$) * scale
        $bias$
        scores = tl.where((j >= $begin$) & (j < $end$), scores, -float("inf"))
        tl.store(scores_ptr + (head * queries + i) * keys + j, scores, mask=(i < queries) & (j < keys))


@triton.jit
def weigh(scores_ptr, queries, keys$parameters$, LINE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = (row % queries).to(tl.int32)
    begin = $begin$
    stop = tl.minimum($end$, keys)
    scores_ptr += row * keys
    largest = tl.full([LINE], -float("inf"), tl.float32)
    for start in range(begin, stop, LINE):
        j = start + tl.arange(0, LINE)
        largest = tl.maximum(largest, tl.load(scores_ptr + j, mask=j < stop, other=-float("inf")))
    top = tl.max(largest, 0)
    sums = tl.zeros([LINE], tl.float32)
    for start in range(begin, stop, LINE):
        j = start + tl.arange(0, LINE)
        sums += tl.exp(tl.load(scores_ptr + j, mask=j < stop, other=-float("inf")) - top)
    sum = tl.sum(sums, 0)
    for start in range(begin, stop, LINE):
        j = start + tl.arange(0, LINE)
        score = tl.load(scores_ptr + j, mask=j < stop, other=-float("inf"))
        tl.store(scores_ptr + j, tl.exp(score - top) / sum, mask=j < stop)


@triton.jit
def average(
    $pointers$, scores_ptr, out_ptr, heads, groups, queries, keys, dim$parameters$,
    DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SKIP: tl.constexpr, PRECISION: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    kept = $head$
    c = tl.arange(0, DIM)[None, :]
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    begin = 0
    stop = keys
    if SKIP:
        begin = tl.maximum($first$, 0) // BN * BN
        stop = tl.minimum($stop$, keys)
    total = tl.zeros([BM, DIM], tl.float32)
    for start in range(begin, stop, BN):
        j = start + tl.arange(0, BN)[None, :]
        down = start + tl.arange(0, BN)[:, None]
        seen = (i < queries) & (j < keys) & (j >= $begin$) & (j < $end$)
        weights = tl.load(scores_ptr + (head * queries + i) * keys + j, mask=seen, other=0.0)
        v = tl.load(v_ptr + (kept * keys + down) * dim + c, mask=(down < keys) & (c < dim), other=0.0)
        total += tl.dot(weights.to($type$), v$dot$)
    tl.store(out_ptr + (head * queries + i) * dim + c, total, mask=(i < queries) & (c < dim))


def custom_kernel(data):
    $ins$ = data
    $sizes$
    groups, keys = k.shape[:2]
    out = torch.empty_like(q)
    scores = torch.empty((heads, queries, keys), dtype=torch.float32, device=q.device)
    width = max(16, triton.next_power_of_2(dim))
    blocks = triton.cdiv(queries, BM)
    dots[(blocks, triton.cdiv(keys, BN), heads)](
        $tensors$, scores, heads, groups, queries, keys, dim$parameters$, dim**-0.5,
        DIM=width, BM=BM, BN=BN, SKIP=SKIP, PRECISION=PRECISION, num_warps=WARPS,
    )
    weigh[(heads * queries,)](scores, queries, keys$parameters$, LINE=LINE, num_warps=4)
    average[(blocks, heads)](
        $tensors$, scores, out, heads, groups, queries, keys, dim$parameters$,
        DIM=width, BM=BM, BN=BN, SKIP=SKIP, PRECISION=PRECISION, num_warps=WARPS,
    )
    return out
