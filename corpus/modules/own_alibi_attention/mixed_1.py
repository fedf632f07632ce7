import math

import torch
import triton
import triton.language as tl


@triton.jit
def alibi_softmax(s_ptr, slope_ptr, p_ptr, L, H, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    t = (row % L).to(tl.int32)
    slope = tl.load(slope_ptr + (row // L) % H)
    c = tl.arange(0, BLOCK)
    x = tl.load(s_ptr + row * L + c, mask=c <= t, other=0.0).to(tl.float32)
    # the row's own position adds the same to all scores, so the column alone will do
    x = tl.where(c <= t, x * scale + slope * c, -float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(p_ptr + row * L + c, (e / tl.sum(e, 0)).to(tl.float16), mask=c < L)


def custom_kernel(data):
    q, k, v, slopes = data
    B, H, L, D = q.shape
    scores = torch.matmul(q, k.transpose(2, 3))
    alibi_softmax[(B * H * L,)](scores, slopes, scores, L, H, 1 / math.sqrt(D), BLOCK=triton.next_power_of_2(L), num_warps=8)
    return torch.matmul(scores, v)
