import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Division folded into the convolution weights on each call."""

    def __init__(self, in_channels, out_channels, kernel_size, divisor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.divisor = divisor

    def forward(self, x):
        r = 1.0 / self.divisor
        y = F.conv2d(x, self.conv.weight * r, self.conv.bias * r)
        return F.leaky_relu_(y, 0.01)
