import torch
import triton
import triton.language as tl


@triton.jit
def sum_segment(v_ptr, start_ptr, o_ptr, D: tl.constexpr, ROWS: tl.constexpr):
    s = tl.program_id(0)
    begin = tl.load(start_ptr + s)
    end = tl.load(start_ptr + s + 1)
    d = tl.arange(0, D)
    acc = tl.zeros((D,), tl.float32)
    for r in range(begin, end, ROWS):
        rr = r + tl.arange(0, ROWS)
        acc += tl.sum(tl.load(v_ptr + rr[:, None] * D + d[None, :], mask=(rr < end)[:, None], other=0.0), 0)
    tl.store(o_ptr + s * D + d, acc)


def custom_kernel(data):
    values, segments, count = data
    D = values.shape[1]
    # sorted ids: a segment begins where its number would be inserted
    start = torch.searchsorted(segments, torch.arange(count + 1, device=segments.device))
    out = torch.empty((count, D), device=values.device, dtype=values.dtype)
    sum_segment[(count,)](values, start, out, D=D, ROWS=16, num_warps=2)
    return out
