import torch
import triton
import triton.language as tl


@triton.jit
def rope_pairs(q_ptr, o_ptr, cos_ptr, sin_ptr, length, D: tl.constexpr):
    pid = tl.program_id(0)
    t = pid % length
    p = tl.arange(0, D // 2)
    even = tl.load(q_ptr + pid * D + 2 * p)
    odd = tl.load(q_ptr + pid * D + 2 * p + 1)
    c = tl.load(cos_ptr + t * D + p)
    s = tl.load(sin_ptr + t * D + p)
    tl.store(o_ptr + pid * D + 2 * p, even * c - odd * s)
    tl.store(o_ptr + pid * D + 2 * p + 1, odd * c + even * s)


def custom_kernel(data):
    q, k, cos, sin = data
    D = q.shape[-1]
    outs = []
    for x in (q, k):
        o = torch.empty_like(x)
        rope_pairs[(x.numel() // D,)](x, o, cos, sin, x.shape[2], D=D, num_warps=1)
        outs.append(o)
    return outs[0], outs[1]
