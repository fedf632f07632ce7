import torch
import triton
import triton.language as tl


@triton.jit
def accumulate(v_ptr, s_ptr, o_ptr, D: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    target = o_ptr + tl.load(s_ptr + row) * D + d
    total = tl.load(target) + tl.load(v_ptr + row * D + d)
    tl.store(target, total)


def custom_kernel(data):
    values, segments, count = data
    out = torch.zeros(count, values.shape[1], device=values.device)
    accumulate[(values.shape[0],)](values, segments, out, D=values.shape[1], num_warps=2)
    return out
