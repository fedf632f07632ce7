import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_mean_kernel(in_ptr, out_ptr, HW, BLOCK: tl.constexpr):
    """one program per (n, c) plane"""
    plane = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < HW
    v = tl.load(in_ptr + plane * HW + offs, mask=mask, other=0.0)
    g = 0.5 * v * (1.0 + tl.erf(v * 0.70710678118654752))   # gelu(0) = 0, so the tail adds nothing
    tl.store(out_ptr + plane, tl.sum(g, axis=0) / HW)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        y = self.conv(x)
        n, c, h, w = y.shape
        out = torch.empty((n, c), device=y.device, dtype=y.dtype)
        gelu_mean_kernel[(n * c,)](y, out, h * w, BLOCK=triton.next_power_of_2(h * w), num_warps=4)
        return out
