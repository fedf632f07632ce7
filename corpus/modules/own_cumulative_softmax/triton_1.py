import torch
import triton
import triton.language as tl


@triton.jit
def join(m0, s0, m1, s1):
    m = tl.maximum(m0, m1)
    return m, s0 * tl.exp(m0 - m) + s1 * tl.exp(m1 - m)


@triton.jit
def prefix_softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    ok = c < N
    x = tl.load(x_ptr + row * N + c, mask=ok, other=-1e30)
    m, s = tl.associative_scan((x, tl.full((BLOCK,), 1.0, tl.float32)), 0, join)
    tl.store(y_ptr + row * N + c, tl.exp(x - m) / s, mask=ok)


def custom_kernel(data):
    (x,) = data
    y = torch.empty_like(x)
    prefix_softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y
