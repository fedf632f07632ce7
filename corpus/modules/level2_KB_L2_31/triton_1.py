import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def min_bias_scale_kernel(x_ptr, bias_ptr, out_ptr, const_val, scale, HW: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    # one program per image channel
    pid = tl.program_id(0)
    c = pid % C
    b = tl.load(bias_ptr + c)
    for start in range(0, HW, BLOCK):
        idx = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + pid * HW + idx)
        x = tl.minimum(x, const_val)
        x = (x + b) * scale
        tl.store(out_ptr + pid * HW + idx, x, mask=idx < HW)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.constant_value = constant_value
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv(x)
        N, C, H, W = x.shape
        out = torch.empty_like(x)
        min_bias_scale_kernel[(N * C,)](x, self.bias, out, self.constant_value, self.scaling_factor,
                                        HW=H * W, C=C, BLOCK=256, num_warps=2)
        return out
