import torch
import triton
import triton.language as tl


@triton.jit
def write_new(dst_ptr, src_ptr, pos_ptr, H, room, new, D: tl.constexpr):
    pid = tl.program_id(0)
    t = pid % new
    bh = pid // new
    p = tl.load(pos_ptr + (bh // H) * new + t)
    d = tl.arange(0, D)
    tl.store(dst_ptr + (bh.to(tl.int64) * room + p) * D + d, tl.load(src_ptr + pid * D + d))


def custom_kernel(data):
    cache_k, cache_v, k, v, positions = data
    B, H, room, D = cache_k.shape
    new = k.shape[2]
    outs = []
    for cache, fresh in ((cache_k, k), (cache_v, v)):
        out = torch.empty_like(cache)
        out.copy_(cache)
        write_new[(B * H * new,)](out, fresh, positions, H, room, new, D=D, num_warps=1)
        outs.append(out)
    return tuple(outs)
