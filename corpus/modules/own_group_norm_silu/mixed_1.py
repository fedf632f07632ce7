import torch
import triton
import triton.language as tl


@triton.jit
def affine_silu(x_ptr, scale_ptr, shift_ptr, y_ptr, HW, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = p < HW
    h = tl.load(x_ptr + plane * HW + p, mask=ok) * tl.load(scale_ptr + plane) + tl.load(shift_ptr + plane)
    tl.store(y_ptr + plane * HW + p, h / (1 + tl.exp(-h)), mask=ok)


def custom_kernel(data):
    x, w, b = data
    N, C, H, W = x.shape
    var, mean = torch.var_mean(x.view(N, 32, -1), dim=-1, unbiased=False)
    rstd = torch.rsqrt(var + 1e-5).repeat_interleave(C // 32, dim=1)
    scale = (rstd * w).contiguous()
    shift = (b - mean.repeat_interleave(C // 32, dim=1) * scale).contiguous()
    y = torch.empty_like(x)
    affine_silu[(N * C, triton.cdiv(H * W, 1024))](x, scale, shift, y, H * W, BLOCK=1024)
    return y
