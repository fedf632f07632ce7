import torch
import triton
import triton.language as tl


@triton.jit
def cmul(a_ptr, b_ptr, o_ptr, N, sa0, sa1, sb0, sb1, BI: tl.constexpr, BJ: tl.constexpr):
    i = tl.program_id(0) * BI + tl.arange(0, BI)[:, None]
    j = tl.program_id(1) * BJ + tl.arange(0, BJ)[None, :]
    ok = (i < N) & (j < N)
    pa = a_ptr + i * sa0 + j * sa1
    pb = b_ptr + i * sb0 + j * sb1
    ar = tl.load(pa, mask=ok)
    ai = tl.load(pa + 1, mask=ok)
    br = tl.load(pb, mask=ok)
    bi = tl.load(pb + 1, mask=ok)
    out = tl.join(ar * br - ai * bi, ar * bi + ai * br)
    at = ((i * N + j) * 2)[:, :, None] + tl.arange(0, 2)[None, None, :]
    tl.store(o_ptr + at, out, mask=ok[:, :, None] & (tl.arange(0, 2) < 2)[None, None, :])


def custom_kernel(data):
    a, b = data
    N = a.shape[0]
    out = torch.empty((N, N, 2), device=a.device, dtype=a.dtype)
    cmul[(triton.cdiv(N, 32), triton.cdiv(N, 32))](a, b, out, N, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
                                                   BI=32, BJ=32, num_warps=4)
    return out
