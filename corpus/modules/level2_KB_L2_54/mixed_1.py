import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def lrelu_gelu_rows(x_ptr, y_ptr, HW, BLOCK: tl.constexpr):
    # program per (image, channel) plane
    plane = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + plane * HW + offs)
    v = tl.where(v > 0, v, 0.01 * v)
    # tanh form of gelu, written with a sigmoid
    u = 1.5957691216057308 * (v + 0.044715 * v * v * v)
    tl.store(y_ptr + plane * HW + offs, v * tl.sigmoid(u), mask=offs < HW)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, multiplier_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.multiplier = nn.Parameter(torch.randn(multiplier_shape))
        self.leaky_relu = nn.LeakyReLU()

    def forward(self, x):
        m = self.multiplier
        h = F.conv2d(x, self.conv.weight * m.unsqueeze(-1), self.conv.bias * m.view(-1))
        y = torch.empty_like(h)
        HW = h.shape[2] * h.shape[3]
        lrelu_gelu_rows[(h.shape[0] * h.shape[1],)](h, y, HW, BLOCK=triton.next_power_of_2(HW))
        return y
