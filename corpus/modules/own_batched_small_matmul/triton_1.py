import torch
import triton
import triton.language as tl


@triton.jit
def small_mm(a_ptr, b_ptr, c_ptr, count, S: tl.constexpr, PER: tl.constexpr):
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    for p in range(PER):
        m = tl.program_id(0) * PER + p
        if m < count:
            a = tl.load(a_ptr + m * S * S + at)
            b = tl.load(b_ptr + m * S * S + at)
            tl.store(c_ptr + m * S * S + at, tl.dot(a, b, input_precision="ieee"))


def custom_kernel(data):
    a, b = data
    c = torch.empty_like(a)
    small_mm[(triton.cdiv(a.shape[0], 8),)](a, b, c, a.shape[0], S=a.shape[1], PER=8, num_warps=1)
    return c
