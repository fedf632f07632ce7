$tune_form$
# presage: tune BLOCK = 1024, 256, 4096
# presage: tune WARPS = 4, 1, 8
# presage: where BLOCK < 4096 or WARPS > 1
#
# FORM 0 is the plain formula, 1 is in double precision, 2 rounds every step to half, and those from 3 on are other ways
# to write it.
import torch
import triton
import triton.language as tl

$form_helpers$


@triton.jit
def over_forms($pointers$, n, FORM: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    $load$
    $forms$
    $store$


def custom_kernel(data):
    $ins$, = data
    $empty$
    n = $first$.numel()
    over_forms[(triton.cdiv(n, BLOCK),)]($ins$, $outs$, n, FORM=FORM, BLOCK=BLOCK, num_warps=WARPS)
    return $outs$
