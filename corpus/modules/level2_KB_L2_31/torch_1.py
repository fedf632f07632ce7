import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.constant_value = constant_value
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        # scale > 0 commutes with min: fold it in the filters, then clamp and add s * bias
        s = self.scaling_factor
        y = F.conv2d(x, self.conv.weight * s, self.conv.bias * s)
        return y.clamp_(max=self.constant_value * s).add_(self.bias * s)
