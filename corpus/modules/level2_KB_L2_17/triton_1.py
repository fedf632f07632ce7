import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def instance_norm_div(x_ptr, y_ptr, HW, eps, inv_div, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < HW
    x = tl.load(x_ptr + row * HW + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / HW
    xc = tl.where(mask, x - mean, 0.0)
    var = tl.sum(xc * xc, axis=0) / HW
    y = xc * (inv_div / tl.sqrt(var + eps))
    tl.store(y_ptr + row * HW + cols, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, divide_by):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.instance_norm = nn.InstanceNorm2d(out_channels)
        self.divide_by = divide_by

    def forward(self, x):
        x = self.conv(x)
        n, c, h, w = x.shape
        y = torch.empty_like(x)
        instance_norm_div[(n * c,)](x, y, h * w, self.instance_norm.eps, 1.0 / self.divide_by,
                                    BLOCK=triton.next_power_of_2(h * w), num_warps=4)
        return y
