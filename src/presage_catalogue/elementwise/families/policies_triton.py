# presage: tune BLOCK = 1024, 128, 8192
# presage: tune WARPS = 4, 1
# presage: tune LOAD = none, cv
# presage: tune EVICT = none, first, last
# presage: tune STORE = none, cs, wt
# presage: where BLOCK <= 1024 or WARPS > 1
# presage: where LOAD == "none" or EVICT == "none"
# presage: where STORE == "none" or EVICT == "none"
#
# A program per block of elements, with a cache modifier or an eviction policy for what it reads and one for what it
# writes.
import torch
import triton
import triton.language as tl

MODIFIERS = {"none": "", "cv": ".cv", "cs": ".cs", "wt": ".wt"}
POLICIES = {"none": "", "first": "evict_first", "last": "evict_last"}

$helpers$


@triton.jit
def over_blocks($pointers$, n, LOAD: tl.constexpr, EVICT: tl.constexpr, STORE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    $load_with$
    $apply$
    $store_with$


def custom_kernel(data):
    $ins$, = data
    $empty$
    n = $first$.numel()
    hints = {"LOAD": MODIFIERS[LOAD], "EVICT": POLICIES[EVICT], "STORE": MODIFIERS[STORE]}
    over_blocks[(triton.cdiv(n, BLOCK),)]($ins$, $outs$, n, **hints, BLOCK=BLOCK, num_warps=WARPS)
    return $outs$
