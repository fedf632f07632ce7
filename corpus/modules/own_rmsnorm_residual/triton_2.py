import torch
import triton
import triton.language as tl


@triton.jit
def fused_add_norm(x_ptr, r_ptr, w_ptr, y_ptr, s_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * width
    r_ptr += row * width
    y_ptr += row * width
    s_ptr += row * width
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, width, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + offs).to(tl.float32) + tl.load(r_ptr + offs).to(tl.float32)
        acc += v * v
        tl.store(s_ptr + offs, v, mask=offs < width)
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / width + eps)
    for start in range(0, width, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        m = offs < width
        v = tl.load(x_ptr + offs, mask=m).to(tl.float32) + tl.load(r_ptr + offs, mask=m).to(tl.float32)
        tl.store(y_ptr + offs, v * rstd * tl.load(w_ptr + offs, mask=m).to(tl.float32), mask=m)


def custom_kernel(data):
    x, residual, weight = data
    y = torch.empty_like(x)
    s = torch.empty_like(x)
    fused_add_norm[(x.shape[0],)](x, residual, weight, y, s, x.shape[1], 1e-6, BLOCK=2048, num_warps=4)
    return y, s
