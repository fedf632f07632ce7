import torch
import triton
import triton.language as tl


@triton.jit
def dequant(w_ptr, s_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = at < n
    w = tl.load(w_ptr + at, mask=m).to(tl.float16)
    s = tl.load(s_ptr + at // 128, mask=m)
    tl.store(o_ptr + at, w * s, mask=m)


def custom_kernel(data):
    x, w, s = data
    wide = torch.empty(w.shape, device=w.device, dtype=torch.float16)
    dequant[(triton.cdiv(w.numel(), 4096),)](w, s, wide, w.numel(), BLOCK=4096, num_warps=8)
    return torch.nn.functional.linear(x, wide)
