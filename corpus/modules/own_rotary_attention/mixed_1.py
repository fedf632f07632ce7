import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def rope_both(q_ptr, k_ptr, c_ptr, s_ptr, qo_ptr, ko_ptr, L, HALF: tl.constexpr):
    row = tl.program_id(0)
    h = tl.arange(0, HALF)
    c = tl.load(c_ptr + (row % L) * HALF + h)
    s = tl.load(s_ptr + (row % L) * HALF + h)
    at = row * 2 * HALF + h
    a = tl.load(q_ptr + at).to(tl.float32)
    b = tl.load(q_ptr + at + HALF).to(tl.float32)
    tl.store(qo_ptr + at, (a * c - b * s).to(tl.float16))
    tl.store(qo_ptr + at + HALF, (b * c + a * s).to(tl.float16))
    a = tl.load(k_ptr + at).to(tl.float32)
    b = tl.load(k_ptr + at + HALF).to(tl.float32)
    tl.store(ko_ptr + at, (a * c - b * s).to(tl.float16))
    tl.store(ko_ptr + at + HALF, (b * c + a * s).to(tl.float16))


def custom_kernel(data):
    q, k, v, cos, sin = data
    B, H, L, D = q.shape
    q2, k2 = torch.empty_like(q), torch.empty_like(k)
    rope_both[(B * H * L,)](q, k, cos, sin, q2, k2, L, HALF=D // 2, num_warps=1)
    return F.scaled_dot_product_attention(q2, k2, v, is_causal=True)
