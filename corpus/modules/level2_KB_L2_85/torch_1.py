import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.maxpool = nn.MaxPool2d(kernel_size=maxpool_kernel_size)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        gn = self.group_norm
        s = self.scale.reshape(-1)
        y = self.conv(x)
        # the per-channel scale goes into the affine part of the normalisation
        y = F.group_norm(y, gn.num_groups, gn.weight * s, gn.bias * s, gn.eps)
        return self.maxpool(y).clamp_(self.clamp_min, self.clamp_max)
